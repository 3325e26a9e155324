// Certificates of a stack, and of a platform that runs alone with TLS on its own port, as an operator and a person with an account meet them: the real programs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually, freePort } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { withoutOurEnvironment } from '../stack.fixture.ts';
import { it } from '../system-test.fixture.ts';
import { TUNNEL_BIN } from '../tunnel-program.fixture.ts';
import { AcmeStack, DOMAIN, type Ran, SOON, tunnelServer } from './acme-stack.fixture.ts';

it('certificates of a stack are listed and renewed beside it; a lost key file is said and stops nobody', async ({
  harness,
}) => {
  const stage = await AcmeStack.start(harness, { command: 'stack' });
  const first = await eventually(() => stage.serialOf(DOMAIN), SOON);
  expect(await stage.list()).toMatchObject([{ names: [DOMAIN], source: 'acme', state: 'valid', last_error: null }]);
  const renewed = await stage.certificates('renew', DOMAIN, '--json');
  expect([renewed.code, JSON.parse(renewed.out)]).toEqual([0, { name: DOMAIN, begun: true }]);
  const second = await eventually(async () => {
    const serial = await stage.serialOf(DOMAIN);
    expect(serial).not.toBe(first);
    return serial;
  }, SOON);
  const unknown = await stage.certificates('renew', `www.${DOMAIN}`);
  expect([unknown.code === 0, unknown.err]).toEqual([
    false,
    expect.stringContaining(`there is no certificate for www.${DOMAIN}; near it: ${DOMAIN}`),
  ]);

  await stage.stack.stop();
  const file = join(stage.stack.dataDir, 'certificate-key');
  renameSync(file, `${file}.lost`);
  writeFileSync(file, `${'A'.repeat(43)}\n`, { mode: 0o600 });
  await stage.stack.start();
  await stage.stack.program.waitForLine(/sealed under another one/, SOON);
  expect((await stage.list())[0]).toMatchObject({ names: [DOMAIN] });
  await stage.stack.stop();
  renameSync(`${file}.lost`, file);
  await stage.stack.start();
  expect(await eventually(() => stage.serialOf(DOMAIN), SOON)).toBe(second);
});

const tunnel = async (home: string, args: readonly string[], input = ''): Promise<Ran> => {
  const child = spawn(process.execPath, [TUNNEL_BIN, ...args], { env: { ...withoutOurEnvironment(), HOME: home } });
  child.stdin.end(input);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, out, err };
};

/** Its host is this machine: calls by name are answered, and an authority of the test vouches for it. */
const platformAlone = async (harness: Harness, challenge: string): Promise<{ stage: AcmeStack; port: number }> => {
  const port = await freePort();
  const stage = await AcmeStack.start(harness, {
    command: 'platform',
    env: { TUNNEL_PLATFORM__PORT: `${port}` },
    platform: `tls = true\npublic_url = "https://localhost:${port}"`,
    authority: { challenges: [challenge] },
  });
  return { stage, port };
};

for (const challenge of ['tls-alpn-01', 'http-01']) {
  it(`a platform alone speaks TLS on its port, validated there by ${challenge}`, async ({ harness }) => {
    const { stage, port } = await platformAlone(harness, challenge);
    const first = await eventually(() => stage.serialOf('localhost', port), SOON);
    expect(await stage.ask('localhost', port, '/health')).toMatchObject({ status: 200 });
    const clear = await fetch(`http://127.0.0.1:${port}/health`);
    expect([clear.status, await clear.json()]).toEqual([400, expect.objectContaining({ code: 'API_HTTPS_ONLY' })]);
    const shown = (await stage.list()).filter(({ names }) => names.includes('localhost'));
    expect(shown).toMatchObject([{ state: 'valid', last_error: null }]);

    const home = await harness.folder();
    const rootFile = join(home, 'root.pem');
    writeFileSync(rootFile, stage.authority.root);
    const account = ['ops@example.com', '--password-stdin', ...stage.stack.flags];
    const made = await tunnelServer('admin', 'users', 'list', ...stage.stack.flags);
    expect([made.code, account.length > 0]).toEqual([0, true]);
    const at = ['--platform', `https://localhost:${port}`, '--email', 'nobody@example.com', '--password-stdin'];
    const untrusted = await tunnel(home, ['login', ...at], 'wrong horse battery\n');
    expect(untrusted.err).toMatch(/certificate/i);
    const login = await tunnel(home, ['login', ...at, '--ca-file', rootFile], 'wrong horse battery\n');
    expect([login.code === 0, login.err]).toEqual([false, expect.stringContaining('password')]);

    expect((await stage.certificates('renew', 'localhost')).code).toBe(0);
    await eventually(async () => expect(await stage.serialOf('localhost', port)).not.toBe(first), SOON);
  });
}
