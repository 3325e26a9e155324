// Tests of names owned by accounts at a standalone edge. Names are stored in names.json, and the accounts come from [[auth.keys]].
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { askHttp, type PublicEndpoint, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, TLS_FLAGS } from '../https-visitor.fixture.ts';
import { type Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';
import { fateOf } from '../visitor.fixture.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const keyTable = (account: string, reserved: readonly string[] = []): string =>
  `[[auth.keys]]\naccount = "${account}"\nsha256 = "${sha256(`key-${account}`)}"\nreserved = ${JSON.stringify(reserved)}`;

const tables = (reserved: readonly string[] = []): string =>
  `[load_balancing]\nenabled = true\n${keyTable('ann', reserved)}\n${keyTable('ben')}`;

const run = (
  harness: Harness,
  stack: Stack,
  account: string,
  args: readonly (string | number)[],
): Promise<TunnelProgram> =>
  harness.run([...args.map(String), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: `key-${account}` },
  });

/** Waits for the tunnel, and returns `ready` or the message with which the tunnel was refused. */
const outcomeOf = async (program: TunnelProgram): Promise<string> =>
  eventually(
    () => {
      const ready = program.events('ready')[0];
      const error = program.events('error')[0];
      if (ready === undefined && error === undefined) throw new Error(program.stderr.join('\n'));
      return ready === undefined ? String(error?.['message']) : 'ready';
    },
    { timeoutMs: 30_000 },
  );

const endpointAt = (stack: Stack, name: string): PublicEndpoint => {
  const { port } = new URL(stack.run.http_url);
  return { host: `${name}.localhost:${port}`, port: Number(port) };
};

const visit = async (stack: Stack, name: string): Promise<string> => {
  const { status, text, headers } = await askHttp(endpointAt(stack, name));
  return status === 200 ? text : `${status} ${String(headers['x-tunnel-error'])}`;
};

const serve = async (harness: Harness, text: string): Promise<number> =>
  harness.use(await startWeb((_, response) => void response.end(text))).port;

describe.concurrent('names at a standalone edge', () => {
  it('a name belongs to its account from first use on, even after the edge was killed', async ({ harness }) => {
    const stack = await harness.stack({ fixedPorts: true, tables: tables() });
    const flags = ['http', await serve(harness, 'ann’s'), '--subdomain', 'shop'];
    const first = await run(harness, stack, 'ann', flags);
    expect(await outcomeOf(first)).toBe('ready');
    first.signal('SIGTERM');
    await first.exitCode();
    expect(await outcomeOf(await run(harness, stack, 'ben', flags))).toBe("subdomain 'shop' is already in use");
    expect(await visit(stack, 'shop')).toBe('404 TUNNEL_NOT_FOUND');
    await eventually(() => expect(readFileSync(join(stack.dataDir, 'names.json'), 'utf8')).toContain('"shop"'));
    await stack.kill();
    await stack.start();
    expect(await outcomeOf(await run(harness, stack, 'ben', flags))).toBe("subdomain 'shop' is already in use");
    expect(await outcomeOf(await run(harness, stack, 'ann', flags))).toBe('ready');
    expect(await visit(stack, 'shop')).toBe('ann’s');
  });

  it('a name reserved by a key gives a 502 while its client is away, and a reserved port goes only to its account', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const only = 0;
    const spare = 1;
    const stack = await harness.stack({ tcpPorts: 2 });
    await stack.stop();
    const { from } = stack.tcpPorts;
    writeFileSync(
      join(stack.dataDir, '..', 'server.toml'),
      `${readFileSync(join(stack.dataDir, '..', 'server.toml'), 'utf8')}\n${tables(['kept', '*.kept', `tcp/${from + only}`])}\n`,
    );
    await stack.start();
    for (const name of ['kept', 'a.kept']) expect(await visit(stack, name)).toBe('502 TUNNEL_AWAY');
    expect(await fateOf(from)).toBe('ECONNREFUSED');
    const metrics = await (await fetch(stack.run.metrics_url)).text();
    expect(metrics).toContain('tunnel_reserved_names{kind="subdomain"} 2');
    expect(metrics).toContain('tunnel_reserved_names{kind="tcp"} 1');
    const flags = ['http', await serve(harness, 'kept')];
    const taken = await run(harness, stack, 'ben', [...flags, '--subdomain', 'b.kept']);
    expect(await outcomeOf(taken)).toBe("subdomain 'b.kept' is already in use");
    const bens = await run(harness, stack, 'ben', ['tcp', echo.port]);
    expect((await bens.ready()).assigned_port).toBe(from + spare);
    const asked = await run(harness, stack, 'ben', ['tcp', echo.port, '--remote-port', from]);
    expect(await outcomeOf(asked)).toBe(`port ${from} is already in use`);
    const anns = await run(harness, stack, 'ann', ['tcp', echo.port]);
    expect((await anns.ready()).assigned_port).toBe(from);
  });

  it('a released port is assigned again only after all other ports', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack({ tcpPorts: 3, tables: tables() });
    const given: number[] = [];
    for (let at = 0; at < 4; at += 1) {
      const program = await run(harness, stack, at % 2 === 0 ? 'ann' : 'ben', ['tcp', echo.port]);
      given.push((await program.ready()).assigned_port);
      program.signal('SIGTERM');
      await program.exitCode();
    }
    expect(new Set(given.slice(0, 3)).size).toBe(3);
    expect(given[3]).toBe(given[0]);
  });

  it('a group of two accounts restarts in either order, and its name is closed to tunnels outside the group', async ({
    harness,
  }) => {
    const stack = await harness.stack({ tables: tables() });
    const keyFile = join(await harness.folder(), 'group-key');
    writeFileSync(keyFile, 'shared by both', { mode: 0o600 });
    const flags = ['http', await serve(harness, 'pool'), '--group', 'pool', '--group-key-file', keyFile];
    for (const order of [
      ['ann', 'ben'],
      ['ben', 'ann'],
    ]) {
      const members: TunnelProgram[] = [];
      for (const account of order) {
        const member = await run(harness, stack, account, flags);
        expect(await outcomeOf(member)).toBe('ready');
        members.push(member);
      }
      expect(await visit(stack, 'pool')).toBe('pool');
      for (const member of members) {
        member.signal('SIGTERM');
        await member.exitCode();
      }
    }
    const alone = await run(harness, stack, 'ben', ['http', 9, '--subdomain', 'pool']);
    expect(await outcomeOf(alone)).toBe("subdomain 'pool' is already in use");
  });
});

describe.concurrent('nested names', () => {
  it('are served over HTTPS and HTTP/2, exact before wildcard, with captures and rules', async ({ harness }) => {
    const stack = await harness.stack({ tls: true, tables: tables() });
    const open = async (subdomain: string, more: readonly string[] = []): Promise<TunnelProgram> => {
      const port = await serve(harness, subdomain);
      return run(harness, stack, 'ann', ['http', port, '--subdomain', subdomain, ...TLS_FLAGS, ...more]);
    };
    const users = join(await harness.folder(), 'users');
    writeFileSync(users, 'ann:a secret word\n', { mode: 0o600 });
    const shop = await open('shop');
    const wildcard = await open('*.shop');
    const exact = await open('a.shop', ['--basic-auth-file', users]);
    const { port } = new URL((await shop.ready()).public_url);
    expect(new URL((await wildcard.ready()).public_url.replace('*', 'any')).hostname).toBe('any.shop.localhost');
    await exact.ready();
    const at = (name: string): PublicEndpoint => ({ host: `${name}.localhost:${port}`, port: Number(port) });
    expect((await askSecurely(at('shop'))).text).toBe('shop');
    expect((await askSecurely(at('b.shop'), '/seen')).text).toBe('*.shop');
    expect((await askSecurely(at('a.shop'))).status).toBe(401);
    expect((await askSecurely(at('x.b.shop'))).status).toBe(404);
    const session = dialHttp2(harness, at('c.shop'));
    expect((await askHttp2(session, '/')).body.toString()).toBe('*.shop');
    const [row] = (await stack.tunnels('key-ann')).filter(({ label }) => label === '*.shop');
    const captures = await stack.api(`/api/tunnels/${row?.tunnel_id}/requests`, { token: 'key-ann' });
    expect(await captures.text()).toContain('/seen');
    const stranger = await run(harness, stack, 'ben', ['http', 9, '--subdomain', 'z.shop', ...TLS_FLAGS]);
    expect(await outcomeOf(stranger)).toBe("subdomain 'z.shop' is already in use");
  });

  it('are read from config.yml; names with too many labels and reserved words are refused', async ({ harness }) => {
    const stack = await harness.stack({ tables: tables() });
    const port = await serve(harness, 'from a file');
    const file = join(await harness.folder(), 'config.yml');
    writeFileSync(file, `tunnels:\n  all: { proto: http, local_port: ${port}, subdomain: '*.shop' }\n`);
    const started = await run(harness, stack, 'ann', ['start', '--config', file]);
    expect(await outcomeOf(started)).toBe('ready');
    expect(await visit(stack, 'any.shop')).toBe('from a file');
    for (const [subdomain, words] of [
      ['a.b.shop', "subdomain 'a.b.shop' is not valid: it has more than two labels"],
      ['a.www', "subdomain 'a.www' is not valid: it is reserved"],
    ] as const) {
      expect(await outcomeOf(await run(harness, stack, 'ann', ['http', port, '--subdomain', subdomain]))).toBe(words);
    }
  });
});
