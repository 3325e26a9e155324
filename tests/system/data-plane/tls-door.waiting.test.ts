// How long the https port waits for a first message: ten seconds for all of it, however it comes.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { helloOfNode } from '../../../apps/edge/src/ingress/tls/hello.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { Harness, it } from '../system-test.fixture.ts';

const WAIT_MS = 10_000;

const shared = new Harness();
let stack: Stack;
let port: number;
beforeAll(async () => {
  stack = await shared.stack({ tls: true });
  port = Number(new URL((stack.run as unknown as { https_url: string }).https_url).port);
});
afterAll(() => shared.close());

/** How long it was let be, and how many bytes it got. */
const lifeOf = (sends: (nth: number) => Uint8Array | null): Promise<{ readonly ms: number; readonly heard: number }> =>
  new Promise((resolve) => {
    const begunAt = performance.now();
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    let [heard, nth] = [0, 0];
    const timer = setInterval(() => {
      const bytes = sends(nth);
      nth += 1;
      if (bytes !== null) socket.write(bytes);
    }, 500);
    socket.on('data', (piece) => {
      heard += piece.length;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(timer);
      resolve({ ms: performance.now() - begunAt, heard });
    });
  });

describe.concurrent('who does not finish a first message is closed after ten seconds, without a word:', () => {
  it.for(['says nothing', 'sends one byte now and then', 'stops in the middle'] as const)('%s', async (way) => {
    const whole = await helloOfNode({ servername: 'shop.localhost' });
    const sends = {
      'says nothing': () => null,
      'sends one byte now and then': (nth: number) => whole.subarray(nth, nth + 1),
      'stops in the middle': (nth: number) => (nth === 0 ? whole.subarray(0, whole.length / 2) : null),
    };
    const { ms, heard } = await lifeOf(sends[way]);
    expect(heard).toBe(0);
    expect(ms).toBeGreaterThan(WAIT_MS - 500);
    expect(ms).toBeLessThan(WAIT_MS + 8000);
  });
});
