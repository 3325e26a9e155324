// Tunnels at a custom domain, from the command line to a real edge in the same process.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { Runs, type Started } from '../run/runs.fixture.ts';

const KEY = 'tnl_of_the_shop';

let home: TemporaryDirectory;
let edge: Edge;
let flags: string[];
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  const sha256 = createHash('sha256').update(KEY).digest('hex');
  edge = await startEdge({ auth: { keys: [{ account: 'shop', sha256, domains: ['shop.example.com'] }] } });
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', KEY, '--drain-secs', '0'];
});
afterEach(async () => {
  await runs.end();
  await edge.stop({ drainMs: 0 });
  await home.close();
});

const start = (args: string[]): Started => {
  const io = makeTestIo({ home: home.path });
  return runs.start([...args, ...flags], io);
};

describe('a tunnel with --domain', () => {
  it.each([
    ['http', '3000'],
    ['http', 'https://localhost:3443'],
    ['files', 'site'],
  ])('%s %s at an unverified domain exits with 4 and names the command that verifies the domain', async (...typed) => {
    mkdirSync(join(home.path, 'site'));
    const { io, code } = start([...typed, '--domain', 'Other.Example.com.']);
    expect(await code).toBe(4);
    expect(io.err()).toContain("domain 'other.example.com' is not verified for this account\n");
    expect(io.err()).toContain('  Verify the domain first: `tunnel domains add other.example.com`.\n');
  });

  it('quotes a wildcard domain in that command', async () => {
    const { io, code } = start(['http', '3000', '--domain', '*.other.example.com']);
    expect([await code, io.err()]).toEqual([4, expect.stringContaining("`tunnel domains add '*.other.example.com'`")]);
  });

  it('reports the same code and next step in --json', async () => {
    const { io, code } = start(['http', '3000', '--domain', 'other.example.com', '--json']);
    expect(await code).toBe(4);
    expect(io.events().find(({ event }) => event === 'error')).toMatchObject({
      code: 'TUNNEL_DOMAIN_UNVERIFIED',
      next: 'Verify the domain first: `tunnel domains add other.example.com`.',
    });
  });

  it('exits with 4 for a name that is not a valid host name', async () => {
    const { io, code } = start(['http', '3000', '--domain', 'localhost']);
    expect([await code, io.err()]).toEqual([4, expect.stringContaining("domain 'localhost' is not valid")]);
  });

  it.each([
    ['http', '3000'],
    ['files', '.'],
    ['tls', '8443'],
    ['mcp-publish', 'cat'],
  ])('and --subdomain exits with 2 for %s %s', async (command, target) => {
    const args = [command, '--domain', 'shop.example.com', '--subdomain', 'shop', target];
    const { io, code } = start(args);
    expect([await code, io.err()]).toEqual([2, 'tunnel: use --domain or --subdomain, not both.\n']);
  });

  it('exits with 2 for tcp', async () => {
    expect(await start(['tcp', '22', '--domain', 'shop.example.com']).code).toBe(2);
  });
});

describe('a tunnel with `domain` in config.yml', () => {
  it('is refused if the domain is unverified, while other tunnels of the file open', async () => {
    const entries = [
      'web: { proto: http, local_port: 3000, domain: other.example.com }',
      'api: { proto: http, local_port: 3001 }',
    ];
    writeFileSync(join(home.path, 'tunnel.yml'), `tunnels:\n  ${entries.join('\n  ')}\n`);
    const { io } = start(['start', '--config', 'tunnel.yml', '--json']);
    await eventually(() =>
      expect(io.events()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ event: 'error', name: 'web', code: 'TUNNEL_DOMAIN_UNVERIFIED' }),
          expect.objectContaining({ event: 'ready', name: 'api' }),
        ]),
      ),
    );
  });
});
