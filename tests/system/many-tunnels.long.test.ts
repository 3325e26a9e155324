// Test of a client with ten thousand tunnels, which open while the connection stays alive, and again after a kill of the edge.
import { readFileSync } from 'node:fs';
import { type Client, connect } from '@tunnel/client';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { it } from './system-test.fixture.ts';

const TUNNELS = 10_000;
const WITHIN_MS = 75_000;

it(
  'a client opens 10,000 tunnels within 75 s, and again after a kill of the edge, over a single connection each time',
  async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    // The edge runs as an executable, so that a kill destroys the in-memory state.
    const stack = await harness.stack({ fixedPorts: true, limits: `tunnels_per_session = ${TUNNELS}` });
    const changes: string[] = [];
    const client: Client = await connect({
      server: stack.control,
      token: readFileSync(stack.tokenFile, 'utf8').trim(),
    });
    harness.use({ close: () => client.close() });
    client.onStatus((event) => {
      if (event.type === 'reconnecting' || event.type === 'reconnected') changes.push(event.type);
    });
    const startedAt = performance.now();
    const open = (n: number) => client.open({ protocol: 'http', name: `t${n}`, localPort: echo.port });
    const tunnels = await Promise.all(Array.from({ length: TUNNELS }, (_, n) => open(n)));
    const openedMs = performance.now() - startedAt;
    expect(openedMs).toBeLessThan(WITHIN_MS);
    expect(changes).toEqual([]);
    const urls = tunnels.map(({ publicUrl }) => publicUrl);
    expect(new Set(urls).size).toBe(TUNNELS);
    await stack.kill();
    const killedAt = performance.now();
    await stack.start();
    await eventually(() => expect(tunnels.filter(({ state }) => state === 'open')).toHaveLength(TUNNELS), {
      timeoutMs: WITHIN_MS,
      intervalMs: 250,
    });
    const backMs = performance.now() - killedAt;
    expect(backMs).toBeLessThan(WITHIN_MS);
    expect(changes.filter((type) => type === 'reconnected')).toHaveLength(1);
    expect(changes.at(-1)).toBe('reconnected');
    expect(tunnels.map(({ publicUrl }) => publicUrl)).toEqual(urls);
  },
  4 * WITHIN_MS,
);
