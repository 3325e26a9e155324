// An edge that dies and comes back on its ports: the client is there again by itself.
import { deterministicBytes, eventually, hashOf, startEchoServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from '../system-test.fixture.ts';
import { ask, endOf, fateOf, sendAndReadAll, visit } from '../visitor.fixture.ts';

describe.concurrent('an edge that was killed', () => {
  it('has its tunnels back on their ports after a new start, without a hand on the client', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack({ fixedPorts: true });
    const tunnel = await harness.tcp(stack, echo.port);
    const { assigned_port: port } = await tunnel.ready();
    const visitor = await visit(port);
    expect(await ask(visitor, 'hello')).toBe('hello');
    const cut = endOf(visitor);
    stack.program.signal('SIGKILL');
    await cut;
    const { planned, reason } = await tunnel.waitFor('reconnecting');
    expect([planned, typeof reason]).toEqual([false, 'string']);
    await eventually(() => expect(echo.openConnections).toBe(0));
    await stack.start();
    expect(await tunnel.waitFor('reconnected')).toMatchObject({ resumed: false });
    const bytes = deterministicBytes(1_000_000, 3);
    expect(hashOf(await sendAndReadAll(port, bytes))).toBe(hashOf(bytes));
    expect((await stack.tunnels()).map((row) => row.assigned_port)).toEqual([port]);
    // The address stayed, so there is nothing to announce again.
    expect(tunnel.events('ready')).toHaveLength(1);
    expect(tunnel.events('error')).toEqual([]);
  });

  it('has two clients back, each on the port it had', async ({ harness }) => {
    const [one, two] = [harness.use(await startEchoServer()), harness.use(await startEchoServer())];
    const stack = await harness.stack({ fixedPorts: true });
    const tunnels = [await harness.tcp(stack, one.port), await harness.tcp(stack, two.port)];
    const ports = await Promise.all(tunnels.map(async (tunnel) => (await tunnel.ready()).assigned_port));
    stack.program.signal('SIGKILL');
    await stack.program.waitForExit();
    for (const port of ports) expect(await fateOf(port)).toBe('ECONNREFUSED');
    await stack.start();
    await Promise.all(tunnels.map((tunnel) => tunnel.waitFor('reconnected')));
    for (const port of ports) expect((await sendAndReadAll(port, Buffer.from('hi'))).toString()).toBe('hi');
    expect([one.totalConnections, two.totalConnections]).toEqual([1, 1]);
  });
});
