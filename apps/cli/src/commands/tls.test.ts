import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { eventOf, Runs, type Started } from '../run/runs.fixture.ts';

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../../packages/testkit/fixtures/tls/${name}`, import.meta.url));

const KEY = 'tnl_of_an_account';

let home: TemporaryDirectory;
let edge: Edge;
let flags: string[];
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, https_port: 0 };
  edge = await startEdge({
    server,
    tls: { cert_path: fixture('cert.pem'), key_path: fixture('key.pem') },
    load_balancing: { enabled: true },
    auth: { keys: [{ account: 'shop', sha256: createHash('sha256').update(KEY).digest('hex') }] },
  });
  const link = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--tls', '--ca-file', fixture('cert.pem')];
  flags = [...link, '--token', 'admin', '--drain-secs', '0'];
});
afterEach(async () => {
  await runs.end();
  await edge.stop({ drainMs: 0 });
  await home.close();
});

const start = (args: string[]): Started => {
  const io = makeTestIo({ home: home.path });
  return runs.start(args, io);
};

describe('`tunnel tls`', () => {
  it('reports the public address in --json', async () => {
    const { io } = start(['tls', '8443', '--subdomain', 'db', ...flags, '--json']);
    const port = edge.addresses.https?.port;
    expect(await eventOf(io, 'ready')).toMatchObject({
      public_url: `tls://db.localhost:${port}`,
      protocol: 'tls',
      name: 'tls-8443',
      assigned_port: port,
      local: '127.0.0.1:8443',
      inspect_url: null,
    });
  });

  it('prints the public address for people', async () => {
    const { io } = start(['tls', '8443', '--subdomain', 'db', ...flags]);
    await eventually(() =>
      expect(io.out()).toContain(`tls://db.localhost:${edge.addresses.https?.port} -> 127.0.0.1:8443`),
    );
  });

  it("uses the group's name as the subdomain if --subdomain is missing", async () => {
    writeFileSync(join(home.path, 'key'), 'shared', { mode: 0o600 });
    const group = ['--group', 'pair', '--group-key-file', join(home.path, 'key'), '--health', 'tcp'];
    const { io } = start(['tls', '8443', ...group, ...flags, '--json']);
    expect(await eventOf(io, 'ready')).toMatchObject({
      group: 'pair',
      public_url: expect.stringContaining('tls://pair.'),
    });
  });

  it.each([
    [[], 'a tls tunnel needs --subdomain or --domain'],
    [['--subdomain', 'a', '--domain', 'a.example.net'], 'use --domain or --subdomain, not both.'],
    [['--subdomain', 'a', '--health', 'http:/'], 'tls tunnels support only `--health tcp`.'],
    [['--subdomain', 'a', '--remote-port', '1'], "unknown option '--remote-port'"],
  ])('exits with 2 with %j', async (typed, words) => {
    const { io, code } = start(['tls', '8443', ...typed, ...flags]);
    expect(await code).toBe(2);
    expect(io.err()).toContain(words);
  });

  it('exits with 4 at an unverified domain and names the command that verifies the domain', async () => {
    const token = flags.map((flag) => (flag === 'admin' ? KEY : flag));
    const { io, code } = start(['tls', '8443', '--domain', 'db.example.net', ...token]);
    expect(await code).toBe(4);
    expect(io.err()).toContain("domain 'db.example.net' is not verified for this account");
    expect(io.err()).toContain('  Verify the domain first: `tunnel domains add db.example.net`.\n');
  });
});

describe('tls in config.yml', () => {
  it('is opened by `tunnel start`', async () => {
    const file = join(home.path, 'tunnel.yml');
    writeFileSync(
      file,
      ['tunnels:', '  vault: { proto: tls, local_port: 8443, subdomain: vault, proxy_protocol: v2 }', ''].join('\n'),
    );
    const { io } = start(['start', '--config', file, ...flags, '--json']);
    expect(await eventOf(io, 'ready')).toMatchObject({
      name: 'vault',
      protocol: 'tls',
      public_url: `tls://vault.localhost:${edge.addresses.https?.port}`,
    });
  });
});
