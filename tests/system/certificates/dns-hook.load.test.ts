// Tests of wildcard certificates of a standalone edge: through the built-in responder, through the operator's program, and with programs
// that fail. Invalid settings are refused at the start.

import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually, freePort, startDnsServer } from '@tunnel/testkit';
import { expect, onTestFinished, vi } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { runServerInProcess } from '../server-in-process.fixture.ts';
import { withoutOurEnvironment } from '../stack.fixture.ts';
import { AcmeStack, DOMAIN, SOON } from './acme-stack.fixture.ts';

const ZONE = `_acme-challenge.${DOMAIN}`;
const WILDCARD = `any.${DOMAIN}`;

const txtFrom = async (address: string, name: string): Promise<readonly string[]> => {
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  resolver.setServers([address]);
  return (await resolver.resolveTxt(name)).map((parts) => parts.join(''));
};

const writeHook = async (harness: Harness, text: string): Promise<string> => {
  const file = join(await harness.folder(), 'hook');
  writeFileSync(file, text);
  chmodSync(file, 0o755);
  return file;
};

it('an edge gets a wildcard certificate through its built-in DNS responder, and accepts a renewal', async ({
  harness,
}) => {
  const port = await freePort();
  const dns = harness.use(await startDnsServer());
  dns.delegate(ZONE, { host: '127.0.0.1', port });
  const edge = await AcmeStack.start(harness, {
    programs: true,
    acme: 'dns = "builtin"',
    tables: `[dns]\nhost = "127.0.0.1"\nport = ${port}\nresolvers = ["${dns.address}"]`,
    authority: { txt: (name) => txtFrom(dns.address, name) },
  });
  await eventually(() => edge.serialOf(WILDCARD), SOON);
  const listed = await edge.certificates('list');
  expect(listed.out).toContain(`*.${DOMAIN}`);
  expect((await edge.certificates('renew', `*.${DOMAIN}`)).code).toBe(0);
});

it('an edge gets a wildcard certificate through the dns_exec program of the operator', async ({ harness }) => {
  const dns = harness.use(await startDnsServer());
  const set = new Map<string, string[]>();
  const hook = await writeHook(harness, '#!/bin/sh\nexec printf "%s\\n" "$@" >> "$(dirname "$0")/asked"\n');
  const edge = await AcmeStack.start(harness, {
    acme: `dns = "exec"\ndns_exec = "${hook}"`,
    tables: `[dns]\nresolvers = ["${dns.address}"]`,
    authority: { txt: async (name) => set.get(name) ?? [] },
  });
  const { name, value } = await eventually(() => {
    const [action, asked = '', given = ''] = readFileSync(join(hook, '../asked'), 'utf8').split('\n');
    expect(action).toBe('set');
    return { name: asked, value: given };
  }, SOON);
  expect(name).toBe(ZONE);
  set.set(name, [value]);
  dns.set(name, 'TXT', value);
  await eventually(() => edge.serialOf(WILDCARD), SOON);
});

const FAILING = [
  [
    'fails and prints a secret',
    'echo "token $PROVIDER_TOKEN"; head -c 5000 /dev/zero | tr "\\0" x; exit 3',
    /exit code 3: token \[secret\] x+/,
  ],
  ['is no program at all', 'exec /nowhere/at/all', /exit code 12[67]/],
] as const;

for (const [what, text, said] of FAILING) {
  it(`a dns_exec program that ${what} costs only the wildcard, and its error is shown without secrets`, async ({
    harness,
  }) => {
    const hook = await writeHook(harness, `#!/bin/sh\n${text}\n`);
    const secret = 's3cret-of-the-provider';
    // The dns_exec program inherits the environment of the server process.
    vi.stubEnv('PROVIDER_TOKEN', secret);
    onTestFinished(() => void vi.unstubAllEnvs());
    const edge = await AcmeStack.start(harness, { acme: `dns = "exec"\ndns_exec = "${hook}"` });
    await eventually(() => edge.serialOf(DOMAIN), SOON);
    const failed = await eventually(async () => {
      const found = (await edge.listByRest()).find(({ names }) => names.includes(`*.${DOMAIN}`));
      expect(found?.last_error).toMatch(said);
      return found?.last_error ?? '';
    }, SOON);
    expect(failed.length).toBeLessThan(1300);
    expect(`${edge.stack.program.stderr.join('\n')}${failed}`).not.toContain(secret);
    await expect(edge.serialOf(WILDCARD)).rejects.toThrow(/unrecognized name/i);
  });
}

it('a dns_exec program that hangs delays neither other certificates nor the shutdown, and ends with the edge', async ({
  harness,
}) => {
  const hook = await writeHook(harness, '#!/bin/sh\necho $$ > "$(dirname "$0")/pid"\nsleep 600\n');
  const edge = await AcmeStack.start(harness, { acme: `dns = "exec"\ndns_exec = "${hook}"` });
  await eventually(() => edge.serialOf(DOMAIN), SOON);
  const pid = await eventually(() => {
    const written = Number(readFileSync(join(hook, '../pid'), 'utf8'));
    expect(written).toBeGreaterThan(0);
    return written;
  }, SOON);
  const from = performance.now();
  await edge.stack.stop();
  expect(performance.now() - from).toBeLessThan(10_000);
  await eventually(() => expect(isProcessAlive(pid)).toBe(false));
});

it('invalid [acme] and [tls] settings end the start with exit code 2 and name their key', async ({ harness }) => {
  const folder = await harness.folder();
  const file = (name: string, text: string, mode: number): string => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), mode);
    return join(folder, name);
  };
  const ports = 'control_port = 0\napi_port = 0\nmetrics_port = 0\nhttp_port = 0\nhttps_port = 0';
  const starts = async (lines: string): Promise<string> => {
    const config = file('server.toml', `[server]\ndomain = "${DOMAIN}"\n${ports}\n${lines}\n`, 0o644);
    const where = { config, dataDir: join(folder, 'data'), workingDir: folder };
    const program = runServerInProcess({ command: 'edge', ...where, env: withoutOurEnvironment() });
    expect([lines, await program.waitForExit()]).toEqual([lines, { code: 2, signal: null }]);
    return program.stderr.join('\n');
  };
  const on = '[acme]\nenabled = true\n';
  expect(await starts(`${on}directory = "ca.example.com"`)).toContain('`acme.directory`');
  expect(await starts(`${on}ca_file = "/nowhere/ca.pem"`)).toContain('`acme.ca_file`');
  expect(await starts(`${on}dns = "exec"\ndns_exec = "/nowhere/hook"`)).toContain('`acme.dns_exec`');
  expect(await starts('[tls]\nlocal_ca = true')).toContain('`tls.local_ca`');
});

it('a busy port of the DNS responder is logged, and the certificate of the domain is still issued', async ({
  harness,
}) => {
  const taken = createSocket('udp4');
  taken.bind(0, '127.0.0.1');
  await once(taken, 'listening');
  harness.use({ close: async () => void taken.close() });
  const edge = await AcmeStack.start(harness, {
    acme: 'dns = "builtin"',
    tables: `[dns]\nhost = "127.0.0.1"\nport = ${taken.address().port}`,
  });
  await edge.stack.program.waitForLine(/built-in DNS responder cannot start/, SOON);
  await eventually(() => edge.serialOf(DOMAIN), SOON);
});
