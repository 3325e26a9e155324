import { describe, expect, it } from 'vitest';
import { DATAGRAM_SEEN_INTERVAL_MS } from './datagram-lane.ts';
import {
  DATAGRAM_UNSEEN_FIRST_BYTES,
  DATAGRAM_UNSEEN_FLOOR_BYTES,
  DATAGRAM_UNSEEN_MAX_BYTES,
  DatagramPace,
} from './datagram-pace.ts';

const KiB = 1024;

/** A simulated path with a capacity in bytes per millisecond and a round-trip time. The receiver acknowledges at most every 10 ms. */
class SimulatedPath {
  readonly pace: DatagramPace;
  readonly delaysMs: number[] = [];
  bytesPerMs: number;
  roundTripMs: number;
  sent = 0;
  dropped = 0;
  /** Datagrams in front of the bottleneck. */
  readonly #queue: { bytes: number; atMs: number }[] = [];
  #passing = 0;
  #taken = 0;
  #told = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  readonly #answers: { taken: number; atMs: number }[] = [];
  isStalled = false;
  nowMs = 0;

  constructor(bytesPerMs: number, roundTripMs: number, known: number | null = null) {
    this.bytesPerMs = bytesPerMs;
    this.roundTripMs = roundTripMs;
    this.pace = new DatagramPace(known);
  }

  send(bytes: number): boolean {
    if (!this.pace.admits(bytes, this.nowMs)) {
      this.dropped += 1;
      return false;
    }
    this.sent += 1;
    this.pace.sent(bytes, this.nowMs);
    this.#queue.push({ bytes, atMs: this.nowMs });
    return true;
  }

  /** Simulates one millisecond. */
  step(): void {
    this.nowMs += 1;
    if (!this.isStalled) this.#passing += this.bytesPerMs;
    while (this.#queue[0] !== undefined && this.#queue[0].bytes <= this.#passing) {
      const { bytes, atMs } = this.#queue.shift() as { bytes: number; atMs: number };
      this.#passing -= bytes;
      this.#taken += bytes;
      this.delaysMs.push(this.nowMs - atMs + this.roundTripMs / 2);
    }
    if (this.#queue.length === 0) this.#passing = 0;
    if (this.#taken > this.#told && this.nowMs - this.#toldAtMs >= DATAGRAM_SEEN_INTERVAL_MS) {
      this.#told = this.#taken;
      this.#toldAtMs = this.nowMs;
      this.#answers.push({ taken: this.#taken, atMs: this.nowMs + this.roundTripMs });
    }
    while (this.#answers[0] !== undefined && this.#answers[0].atMs <= this.nowMs) {
      expect(this.pace.seen((this.#answers.shift() as { taken: number }).taken, this.nowMs)).toBe(true);
    }
  }

  /** Offers `offeredPerMs` bytes per millisecond, in datagrams of 1,200 bytes. */
  run(ms: number, offeredPerMs: number): void {
    let owed = 0;
    for (let i = 0; i < ms; i++) {
      for (owed += offeredPerMs; owed >= 1200; owed -= 1200) this.send(1200);
      this.step();
    }
  }
}

const worst = (delaysMs: number[]): number => delaysMs.reduce((most, ms) => Math.max(most, ms), 0);

describe('DatagramPace', () => {
  it.each([
    ['20 Mbit/s, 1 ms', 2500, 1],
    ['100 Mbit/s, 20 ms', 12_500, 20],
    ['8 Mbit/s, 60 ms', 1000, 60],
    ['400 Mbit/s, 150 ms', 50_000, 150],
  ])('drops nothing within the capacity of the path: %s', (_, bytesPerMs, roundTripMs) => {
    const path = new SimulatedPath(bytesPerMs, roundTripMs);
    // The sender starts slowly, as TCP does.
    for (let share = 0.02; share < 0.9; share *= 1.3) path.run(2 * roundTripMs + 20, bytesPerMs * share);
    path.run(3000, bytesPerMs * 0.9);
    expect(path.dropped).toBe(0);
  });

  it.each([
    ['20 Mbit/s, 1 ms', 2500, 1],
    ['100 Mbit/s, 20 ms', 12_500, 20],
    ['8 Mbit/s, 60 ms', 1000, 60],
    ['2 Mbit/s, 30 ms', 250, 30],
  ])('keeps the delay near 100 ms at five times the capacity of the path: %s', (_, bytesPerMs, roundTripMs) => {
    const path = new SimulatedPath(bytesPerMs, roundTripMs);
    path.run(1000, 5 * bytesPerMs);
    path.delaysMs.length = 0;
    path.run(30_000, 5 * bytesPerMs);
    expect(worst(path.delaysMs)).toBeLessThan(roundTripMs + 150);
    // At least 90 % of the path's capacity is used.
    expect(path.delaysMs.length * 1200).toBeGreaterThan(0.9 * 30_000 * bytesPerMs);
  });

  it('sends at most its first window into a path that is overloaded from the start', () => {
    const path = new SimulatedPath(2500, 1);
    path.run(2000, 12_500);
    expect(worst(path.delaysMs)).toBeLessThan(151);
  });

  it('drops datagrams once a link has stalled for 100 ms, and sends again when it recovers', () => {
    const path = new SimulatedPath(12_500, 10);
    path.run(1000, 1000);
    path.isStalled = true;
    const before = path.sent;
    path.run(150, 1000);
    const early = path.sent - before;
    path.run(1850, 1000);
    expect(early).toBeGreaterThan(50);
    expect(path.sent - before).toBe(early);
    path.isStalled = false;
    path.run(30, 1000);
    const dropped = path.dropped;
    path.run(1000, 1000);
    expect(path.dropped).toBe(dropped);
  });

  it('admits repeated bursts on a path that is idle in between', () => {
    const path = new SimulatedPath(12_500, 20);
    for (let second = 0; second < 20; second++) {
      for (let i = 0; i < 150; i++) path.send(1200);
      path.run(1000, 0);
    }
    expect(path.dropped).toBe(0);
  });

  it('admits a single datagram of any size when nothing else is in flight', () => {
    const pace = new DatagramPace(0);
    expect(pace.admits(WINDOW * 2, 0)).toBe(true);
    pace.sent(WINDOW * 2, 0);
    expect(pace.admits(8, 1)).toBe(false);
    expect(pace.seen(WINDOW * 2, 2)).toBe(true);
    expect(pace.admits(WINDOW * 2, 2)).toBe(true);
  });

  it('adapts to a path with a longer round trip, and then drops nothing', () => {
    const path = new SimulatedPath(12_500, 5);
    path.run(1000, 600);
    path.roundTripMs = 300;
    path.run(10_000, 600);
    const dropped = path.dropped;
    path.run(5000, 600);
    expect(path.dropped).toBe(dropped);
  });

  it('does not mistake a lasting queue for a longer path', () => {
    const path = new SimulatedPath(2500, 5);
    path.run(120_000, 7500);
    path.delaysMs.length = 0;
    path.run(1000, 7500);
    expect(worst(path.delaysMs)).toBeLessThan(155);
  });

  it('admits only the first window while the round trip is unknown', () => {
    const pace = new DatagramPace(null);
    for (let bytes = 0; bytes < WINDOW; bytes += KiB) {
      expect(pace.admits(KiB, bytes)).toBe(true);
      pace.sent(KiB, bytes);
    }
    expect(pace.admits(KiB, WINDOW)).toBe(false);
    expect(pace.unseenBytes).toBe(WINDOW);
  });

  it('refuses a SEEN count above the sent bytes or below an earlier count', () => {
    const pace = new DatagramPace(1);
    pace.sent(100, 0);
    expect(pace.seen(101, 1)).toBe(false);
    expect(pace.seen(60, 1)).toBe(true);
    expect(pace.seen(59, 2)).toBe(false);
    expect(pace.seen(60, 2)).toBe(true);
    expect(pace.unseenBytes).toBe(40);
  });

  it('keeps its bounds for random events, and always admits datagrams again', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    for (let round = 0; round < 20; round++) {
      const pace = new DatagramPace(random(2) === 0 ? null : random(50));
      let now = 0;
      let sent = 0;
      let seen = 0;
      let broken = false;
      for (let event = 0; event < 2000; event++) {
        now += random(4) === 0 ? random(30) : random(2);
        const bytes = 8 + random(1500);
        if (random(10) > 0) {
          const wasEmpty = sent === seen;
          if (pace.admits(bytes, now)) {
            broken ||= !wasEmpty && pace.unseenBytes + bytes > pace.windowBytes;
            pace.sent(bytes, now);
            sent += bytes;
          } else broken ||= wasEmpty;
        } else {
          seen += random(sent - seen + 1);
          broken ||= !pace.seen(seen, now);
        }
        broken ||= pace.unseenBytes !== sent - seen;
        broken ||= pace.windowBytes < DATAGRAM_UNSEEN_FLOOR_BYTES;
        broken ||= pace.windowBytes > DATAGRAM_UNSEEN_MAX_BYTES;
      }
      expect(broken).toBe(false);
      expect(pace.seen(sent, now)).toBe(true);
      expect(pace.admits(1500, now)).toBe(true);
    }
  });
});

const WINDOW = DATAGRAM_UNSEEN_FIRST_BYTES;
