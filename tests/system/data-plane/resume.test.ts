// Tests of a client that dies and restarts: the port and tunnel after the restart, the time limit, and the ports open to other clients
// meanwhile.
import { readFileSync } from 'node:fs';
import { connect } from '@tunnel/client';
import type { Clock } from '@tunnel/runtime';
import { eventually, FastClock, startEchoServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { fateOf, sendAndReadAll } from '../visitor.fixture.ts';

const RESUME_WINDOW_MS = 30_000;

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

const echoOf = async (port: number, text: string): Promise<string> =>
  (await sendAndReadAll(port, Buffer.from(text))).toString();

/** Waits until the edge has noticed that the client is gone. */
const untilUnlisted = (at: Stack, tunnelId: string): Promise<void> =>
  eventually(async () => expect(await at.tunnel(tunnelId)).toBeUndefined());

describe.concurrent('a client that ends and restarts', () => {
  it('gets its port, tunnel id and session back after a kill, if started with the same arguments', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    // The client runs as an executable, so that the next client finds only the state on disk at the time of the kill.
    const first = await harness.tcp(stack, echo.port, { home, programs: true });
    const before = await first.ready();
    const rowBefore = await stack.tunnel(before.tunnel_id);
    expect(await echoOf(before.assigned_port, 'before')).toBe('before');
    await first.kill();
    await untilUnlisted(stack, before.tunnel_id);
    expect(await fateOf(before.assigned_port)).toBe('ECONNREFUSED');
    const second = await harness.tcp(stack, echo.port, { home });
    const after = await second.ready();
    expect([after.assigned_port, after.tunnel_id]).toEqual([before.assigned_port, before.tunnel_id]);
    expect(await echoOf(after.assigned_port, 'after')).toBe('after');
    await eventually(async () =>
      expect(await stack.tunnel(after.tunnel_id)).toMatchObject({
        session_id: rowBefore?.session_id,
        // Counters continue, because the tunnel is the same.
        request_count: 2,
      }),
    );
  });

  it('is identified by its tunnel name: two killed clients of the same home return to their own ports', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    const run = (name: string) => harness.tcp(stack, echo.port, { home, flags: ['--name', name] });
    const a = await run('a');
    const b = await run('b');
    const before = [await a.ready(), await b.ready()];
    await Promise.all([a.kill(), b.kill()]);
    const secondB = await run('b');
    const secondA = await run('a');
    const after = [await secondA.ready(), await secondB.ready()];
    expect(after.map(({ tunnel_id, assigned_port }) => [tunnel_id, assigned_port])).toEqual(
      before.map(({ tunnel_id, assigned_port }) => [tunnel_id, assigned_port]),
    );
  });

  it('is a second client with a separate port if a client with the same arguments is running', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    const first = await harness.tcp(stack, echo.port, { home });
    const second = await harness.tcp(stack, echo.port, { home });
    const one = await first.ready();
    const two = await second.ready();
    expect(two.assigned_port).not.toBe(one.assigned_port);
    expect(two.tunnel_id).not.toBe(one.tunnel_id);
    await second.kill();
    const third = await (await harness.tcp(stack, echo.port, { home })).ready();
    expect([third.assigned_port, third.tunnel_id]).toEqual([two.assigned_port, two.tunnel_id]);
    expect(await echoOf(one.assigned_port, 'first')).toBe('first');
    expect(await echoOf(two.assigned_port, 'third')).toBe('third');
    expect(first.events('reconnecting')).toEqual([]);
  });

  it('keeps its port reserved for 30 s after a kill, and silently gets a new port if it returns later', async ({
    harness: slow,
  }) => {
    const clock = new FastClock(15);
    const harness = slow.use(new Harness({ clock }));
    // A separate stack, because a parallel test could take the freed port of a shared stack.
    const alone = await harness.stack();
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    const lost = await harness.tcp(alone, echo.port, { home });
    const { assigned_port: port, tunnel_id: id } = await lost.ready();
    const killedAt = clock.monotonic();
    await lost.kill();
    await untilUnlisted(alone, id);
    const flags = ['--remote-port', String(port)];
    const early = await harness.tcp(alone, echo.port, { flags });
    expect(await early.exitCode()).toBe(4);
    expect(early.stderr[0]).toContain(`port ${port} is already in use`);
    await untilFree(harness, alone, port, clock);
    const heldMs = clock.monotonic() - killedAt;
    expect(heldMs).toBeGreaterThan(RESUME_WINDOW_MS - 500);
    expect(heldMs).toBeLessThan(RESUME_WINDOW_MS + 15_000);
    const next = await harness.tcp(alone, echo.port, { flags });
    expect((await next.ready()).assigned_port).toBe(port);
    expect(await echoOf(port, 'somebody else')).toBe('somebody else');
    const late = await harness.tcp(alone, echo.port, { home });
    const moved = await late.ready();
    expect(moved.assigned_port).not.toBe(port);
    expect(moved.tunnel_id).not.toBe(id);
    expect([late.stderr, late.events('error')]).toEqual([[], []]);
  });

  it('frees its port at once if it was stopped by SIGTERM', async ({ harness }) => {
    const alone = await harness.stack();
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    const stopped = await harness.tcp(alone, echo.port, { home });
    const { assigned_port: port, tunnel_id: id } = await stopped.ready();
    stopped.signal('SIGTERM');
    expect(await stopped.exitCode()).toBe(0);
    expect(await alone.tunnel(id)).toBeUndefined();
    const next = await harness.tcp(alone, echo.port, { flags: ['--remote-port', String(port)] });
    expect((await next.ready()).assigned_port).toBe(port);
    const again = await (await harness.tcp(alone, echo.port, { home })).ready();
    expect(again.tunnel_id).not.toBe(id);
    expect(again.assigned_port).not.toBe(port);
  });
});

/** Requests the port until the edge grants the request, and releases the port. */
const untilFree = async (harness: Harness, at: Stack, port: number, clock: Clock): Promise<void> => {
  const client = await connect({ server: at.control, token: readFileSync(at.tokenFile, 'utf8').trim(), clock });
  harness.use({ close: () => client.close() });
  const open = () => client.open({ protocol: 'tcp', localPort: 9, remotePort: port });
  const tunnel = await eventually(open, { timeoutMs: 30_000 });
  await tunnel.close();
};
