import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { deterministicBytes } from './deterministic-bytes.ts';
import { duplexPair } from './duplex-pair.ts';
import { eventually } from './eventually.ts';

/** Unlike an async iterator this leaves the other direction open. */
const bytesUntilEnd = async (end: Duplex): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  end.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(end, 'end');
  return Buffer.concat(chunks);
};

describe('duplexPair', () => {
  it('carries bytes both ways, and each direction ends by itself', async () => {
    const { left, right } = duplexPair({ capacityBytes: 1000 });
    const [there, back] = [deterministicBytes(100_000, 1), deterministicBytes(50_000, 2)];
    left.end(there);
    expect((await bytesUntilEnd(right)).equals(there)).toBe(true);
    expect([left.destroyed, right.writable]).toEqual([false, true]);
    right.end(back);
    expect((await bytesUntilEnd(left)).equals(back)).toBe(true);
  });

  it('holds a writer at its capacity until the other end reads', async () => {
    const { left, right } = duplexPair({ capacityBytes: 1000 });
    let written = 0;
    for (let i = 0; i < 200; i++) left.write(Buffer.alloc(1000), () => (written += 1));
    await nextTurn();
    expect(written).toBeLessThanOrEqual(1);
    right.resume();
    await eventually(() => expect(written).toBe(200));
  });

  it('delivers no earlier than the delay', async () => {
    const { left, right } = duplexPair({ delayMs: 30 });
    const sentAt = performance.now();
    left.write('x');
    await once(right, 'data');
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(29);
  });

  it('fails both ends with ECONNRESET when cut', async () => {
    const pair = duplexPair();
    const failures = [once(pair.left, 'error'), once(pair.right, 'error')];
    pair.cut();
    for (const failure of failures) expect(await failure).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('shows a reset to the end whose partner is destroyed', async () => {
    const { left, right } = duplexPair();
    const failure = once(right, 'error');
    left.destroy();
    expect(await failure).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('is silent in a blackhole and delivers after it', async () => {
    const pair = duplexPair();
    const seen: string[] = [];
    pair.right.setEncoding('utf8').on('data', (text: string) => seen.push(text));
    pair.blackhole();
    pair.left.write('later');
    await nextTurn();
    await nextTurn();
    expect([seen, pair.right.destroyed]).toEqual([[], false]);
    pair.restore();
    await eventually(() => expect(seen).toEqual(['later']));
  });
});
