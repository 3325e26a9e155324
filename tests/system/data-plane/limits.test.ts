// Tests of the limits in [limits]: each limit is enforced and reported with a clear error.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from '../in-process.fixture.ts';
import { ask, fateOf, sendAndReadAll, visit } from '../visitor.fixture.ts';

const echoOf = async (port: number, text: string): Promise<string> =>
  (await sendAndReadAll(port, Buffer.from(text))).toString();

describe.concurrent('[limits]', () => {
  it('tunnels_per_session: a third tunnel is refused with a limit of 2, and the first two keep working', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack({ limits: 'tunnels_per_session = 2' });
    const home = await harness.folder();
    mkdirSync(join(home, '.tunnel'));
    const tunnels = ['a', 'b', 'c'].map((name) => `  ${name}: { proto: tcp, local_port: ${echo.port} }`);
    writeFileSync(join(home, '.tunnel', 'config.yml'), `tunnels:\n${tunnels.join('\n')}\n`);
    const args = ['start', '--json', '--server', stack.control, '--token-file', stack.tokenFile];
    const program = await harness.run(args, { home });
    const served = [await program.ready(1), await program.ready(2)];
    expect(await program.waitFor('error')).toMatchObject({
      code: 'TUNNEL_LIMIT',
      message: 'tunnel limit of 2 per session reached',
      fatal: false,
    });
    for (const { assigned_port: port } of served) expect(await echoOf(port, 'hi')).toBe('hi');
    expect(await stack.tunnels()).toHaveLength(2);
    // The limit counts per session, so a second session of the same owner can open a tunnel.
    await (await harness.tcp(stack, echo.port)).ready();
    expect(await stack.tunnels()).toHaveLength(3);
  });

  it('connections_per_tunnel: a third connection is reset with a limit of 2, until another connection closes', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack({ limits: 'connections_per_tunnel = 2' });
    const { assigned_port: port } = await (await harness.tcp(stack, echo.port)).ready();
    const { assigned_port: other } = await (await harness.tcp(stack, echo.port)).ready();
    const one = await visit(port);
    const two = await visit(port);
    expect([await ask(one, 'one'), await ask(two, 'two')]).toEqual(['one', 'two']);
    expect(await fateOf(port)).toBe('ECONNRESET');
    expect(await echoOf(other, 'another tunnel')).toBe('another tunnel');
    expect([await ask(one, 'one'), await ask(two, 'two')]).toEqual(['one', 'two']);
    one.destroy();
    await eventually(async () => expect(await echoOf(port, 'three').catch(String)).toBe('three'));
    await stack.program.waitForLine(/CONNECTIONS_PER_TUNNEL.*connection limit of 2 reached for this tunnel/);
    two.destroy();
  });

  it('connections_per_address: a third connection is reset on any tunnel with a limit of 2, until another connection closes', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack({ limits: 'connections_per_address = 2' });
    const { assigned_port: port } = await (await harness.tcp(stack, echo.port)).ready();
    const { assigned_port: other } = await (await harness.tcp(stack, echo.port)).ready();
    const one = await visit(port);
    const two = await visit(other);
    expect([await ask(one, 'one'), await ask(two, 'two')]).toEqual(['one', 'two']);
    expect([await fateOf(port), await fateOf(other)]).toEqual(['ECONNRESET', 'ECONNRESET']);
    await stack.program.waitForLine(/CONNECTIONS_PER_ADDRESS.*connection limit of 2 reached for this address/);
    one.destroy();
    await eventually(async () => expect(await echoOf(other, 'again').catch(String)).toBe('again'));
    two.destroy();
  });

  it('account_share: a single account gets at most three quarters of the ports, and a second account gets ports at once', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const keys = { greedy: 'tnl_greedy-key', modest: 'tnl_modest-key' };
    const tables = Object.entries(keys).map(
      ([account, key]) =>
        `[[auth.keys]]\naccount = "${account}"\nsha256 = "${createHash('sha256').update(key).digest('hex')}"\n`,
    );
    const stack = await harness.stack({ tcpPorts: 8, limits: 'account_share = 0.25', tables: tables.join('') });
    const startMany = async (key: string, count: number) => {
      const home = await harness.folder();
      mkdirSync(join(home, '.tunnel'));
      const tunnels = Array.from({ length: count }, (_, n) => `  t${n}: { proto: tcp, local_port: ${echo.port} }`);
      writeFileSync(join(home, '.tunnel', 'config.yml'), `tunnels:\n${tunnels.join('\n')}\n`);
      return harness.run(['start', '--json', '--server', stack.control], { home, env: { TUNNEL_API_KEY: key } });
    };
    const greedy = await startMany(keys.greedy, 7);
    await greedy.ready(6);
    expect(await greedy.waitFor('error')).toMatchObject({
      code: 'TUNNEL_PORT_LIMIT',
      message:
        'cannot open another port: this account has 6 ports of [limits] tcp_port_range, and the remaining free ports are kept for other accounts',
    });
    const modest = await startMany(keys.modest, 2);
    for (const nth of [1, 2]) expect(await echoOf((await modest.ready(nth)).assigned_port, 'hi')).toBe('hi');
  });

  // Only Linux routes the whole of 127.0.0.0/8 without configuration.
  it.runIf(process.platform === 'linux')(
    'connections_per_address: each source address has a separate count',
    async ({ harness }) => {
      const echo = harness.use(await startEchoServer());
      const stack = await harness.stack({ limits: 'connections_per_address = 1' });
      const { assigned_port: port } = await (await harness.tcp(stack, echo.port)).ready();
      const one = await visit(port);
      expect(await ask(one, 'one')).toBe('one');
      const neighbour = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.9' });
      await once(neighbour, 'connect');
      expect(await ask(neighbour, 'neighbour')).toBe('neighbour');
      expect(await fateOf(port)).toBe('ECONNRESET');
      for (const visitor of [one, neighbour]) visitor.destroy();
    },
  );

  it('auth_failures_per_minute: at the limit even a valid key is refused, on both ports, and the client reports the wait', async ({
    harness,
  }) => {
    const stack = await harness.stack({ limits: 'auth_failures_per_minute = 3' });
    for (let tries = 0; tries < 2; tries += 1) {
      expect((await stack.api('/api/tunnels', { token: 'wrong' })).status).toBe(401);
    }
    const guess = await harness.run(['tcp', '9', '--server', stack.control, '--token', 'wrong']);
    expect(await guess.exitCode()).toBe(3);
    const answer = await stack.api('/api/tunnels');
    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await answer.json()).toMatchObject({ code: 'AUTH_TOO_MANY_FAILURES' });
    const program = await harness.tcp(stack, 9);
    const { reason, delay_ms: delayMs } = await program.waitFor('reconnecting');
    expect(reason).toMatch(/^too many invalid API keys from this address; try again in \d+ s$/);
    // The client waits as long as the response demands; an earlier attempt would be refused again.
    expect(delayMs).toBeGreaterThan(20_000);
    // Requests without a key are not limited.
    expect((await fetch(`${stack.run.api_url}/api/status`)).status).toBe(200);
  });
});
