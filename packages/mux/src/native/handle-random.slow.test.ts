// Random connections on bare handles: writes of all sizes, stalls, ends and resets from both sides, in any order. Invariants: received
// bytes equal the sent bytes from the start without a gap, an end is reported after the last byte, a reset is reported as a reset, and
// all descriptors are closed.
import { acceptedPair, eventually, rethrow } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { ByteReader, SocketEnd } from '../bytes/byte-duplex.ts';
import { readBuffers } from '../bytes/read-buffers.ts';
import { HandleDuplex } from './handle-duplex.ts';

const CUT = { code: 'cancelled', text: '' } as const;
const PATTERN = Buffer.from(Array.from({ length: 251 * 4096 }, (_, at) => at % 251));

const randomOf = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

class Side implements ByteReader {
  sent = 0;
  got = 0;
  drains = 0;
  isEnded = false;
  isReset = false;
  hasEnded = false;
  hasReset = false;
  closes = 0;
  #stalls = false;
  readonly end: SocketEnd;

  constructor(end: SocketEnd) {
    this.end = end;
    expect(end).toBeInstanceOf(HandleDuplex);
    (end as HandleDuplex).heldBy({ onClosed: () => void (this.closes += 1), onBecame: () => {} });
    end.read(this);
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    expect([this.isEnded, this.isReset, this.hasReset]).toEqual([false, false, false]);
    const from = this.got % 251;
    expect(bytes.compare(PATTERN, from, from + (end - start), start, end)).toBe(0);
    this.got += end - start;
    return !this.#stalls;
  }

  onDrain(): void {
    this.drains += 1;
  }

  onEnd(): void {
    expect([this.isEnded, this.isReset, this.hasReset]).toEqual([false, false, false]);
    this.isEnded = true;
  }

  onReset(): void {
    expect([this.isReset, this.hasReset]).toEqual([false, false]);
    this.isReset = true;
  }

  abandon(error: unknown): void {
    rethrow(error);
  }

  act(random: (below: number) => number): void {
    const choice = random(100);
    if (choice < 60 && !this.hasEnded && !this.hasReset) {
      const size = random(4) === 0 ? random(600_000) : 1 + random(2000);
      const from = this.sent % 251;
      this.end.write(PATTERN, from, from + size, random(2) === 0);
      this.sent += size;
    } else if (choice < 75) {
      this.#stalls = !this.#stalls;
      if (!this.#stalls) this.end.resume();
    } else if (choice < 83) {
      this.end.end();
      this.hasEnded = true;
    } else if (choice < 86) {
      this.end.reset(CUT);
      this.hasReset = true;
    }
  }

  finish(): void {
    this.#stalls = false;
    this.end.resume();
    this.end.end();
    this.hasEnded = true;
  }
}

const live = async (seed: number): Promise<void> => {
  const random = randomOf(seed);
  const [accepted, dialled] = await acceptedPair();
  const sides = [new Side(accepted), new Side(dialled)] as const;
  for (let step = 0; step < 40; step += 1) {
    sides[random(2) as 0 | 1].act(random);
    if (random(3) === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  for (const side of sides) side.finish();
  await eventually(() => expect(sides.map(({ closes }) => closes)).toEqual([1, 1]));
  const [a, b] = sides;
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    expect(to.got).toBeLessThanOrEqual(from.sent);
    if (to.isEnded) expect(to.got).toBe(from.sent);
    // Without a reset by either side, the receiver sees an end and no reset.
    if (!from.hasReset && !to.hasReset) expect([to.isReset, to.isEnded]).toEqual([false, true]);
  }
};

it('120 random connections deliver exactly what was sent, and return all read buffers', async () => {
  const before = readBuffers.borrowed;
  for (let seed = 1; seed <= 120; seed += 8) {
    await Promise.all(Array.from({ length: 8 }, (_, at) => live(seed + at)));
  }
  expect(readBuffers.borrowed).toBe(before);
});
