// When a carrier is pinged: which traffic saves a ping, and that both sides of a quiet or one-directional carrier hear each other in time.

import { expect, it } from 'vitest';
import { CARRIER_DEAD_AFTER_MS, CARRIER_PING_INTERVAL_MS, CarrierLiveness } from './carrier-liveness.ts';

const TICK_MS = 1000;
const PING_BYTES = 16;
/** Longest time a side may be without a byte: an interval, the wait for the tick, and the check that allows a tick less. */
const QUIET_AT_MOST_MS = CARRIER_PING_INTERVAL_MS + 2 * TICK_MS;

interface Side {
  readonly liveness: CarrierLiveness;
  /** Milliseconds within a second at which the side is ticked. */
  readonly phaseMs: number;
  /** The previous release pings in every interval, whatever the traffic. */
  readonly pingsAlways: boolean;
  readonly answers: boolean;
  lastPingMs: number;
  sent: number;
  heardMs: number;
  longestQuietMs: number;
  pings: number;
  deadMs: number | null;
}

const sideOf = (phaseMs: number, { pingsAlways = false, answers = true } = {}): Side => ({
  liveness: new CarrierLiveness(0),
  ...{ phaseMs, pingsAlways, answers, lastPingMs: 0, sent: 0, heardMs: 0, longestQuietMs: 0, pings: 0, deadMs: null },
});

const send = (from: Side, to: Side, bytes: number, nowMs: number): void => {
  from.sent += bytes;
  to.liveness.heard(bytes, nowMs);
  to.longestQuietMs = Math.max(to.longestQuietMs, nowMs - to.heardMs);
  to.heardMs = nowMs;
};

const tick = (side: Side, peer: Side, nowMs: number): void => {
  const { liveness } = side;
  liveness.tick(side.sent, nowMs);
  if (liveness.isDead(nowMs)) side.deadMs ??= nowMs;
  const isDue = side.pingsAlways
    ? nowMs - side.lastPingMs >= CARRIER_PING_INTERVAL_MS
    : liveness.isPingDue(nowMs, true);
  if (!isDue) return;
  side.lastPingMs = nowMs;
  liveness.pinged(nowMs);
  side.pings += 1;
  send(side, peer, PING_BYTES, nowMs);
  if (peer.answers) send(peer, side, PING_BYTES, nowMs);
};

/** Runs both sides of a carrier. `traffic` is called every 100 ms. */
const run = (a: Side, b: Side, seconds: number, traffic: (nowMs: number) => void = () => {}): void => {
  for (let nowMs = 100; nowMs <= seconds * 1000; nowMs += 100) {
    traffic(nowMs);
    for (const [side, peer] of [
      [a, b],
      [b, a],
    ] as const) {
      if (nowMs % TICK_MS === side.phaseMs) tick(side, peer, nowMs);
    }
  }
};

const PHASES = [0, 300, 900].flatMap((a) => [0, 300, 900].map((b) => [a, b] as const));

it.each(PHASES)('an idle carrier is pinged by one side per interval, ticked at %i and %i ms', (a, b) => {
  const sides = [sideOf(a), sideOf(b)] as const;
  run(...sides, 600);
  // A side that answered a ping counts from the tick before the answer, so it can be due a tick early.
  expect(sides[0].pings + sides[1].pings).toBeLessThanOrEqual(67);
  for (const side of sides) {
    expect(side.deadMs).toBeNull();
    expect(side.longestQuietMs).toBeLessThanOrEqual(QUIET_AT_MOST_MS);
  }
});

it.each(PHASES)('a side of the previous release hears enough to stay, ticked at %i and %i ms', (a, b) => {
  const now = sideOf(a);
  const previous = sideOf(b, { pingsAlways: true });
  run(now, previous, 600);
  expect([now.deadMs, previous.deadMs]).toEqual([null, null]);
  expect(previous.longestQuietMs).toBeLessThanOrEqual(QUIET_AT_MOST_MS);
});

it.each([
  ['this release', false],
  ['the previous release', true],
] as const)('bytes in one direction do not silence the other direction, with a peer of %s', (_what, pingsAlways) => {
  for (const [from, to] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const sides = [sideOf(300), sideOf(700, { pingsAlways })] as const;
    run(...sides, 300, (nowMs) => send(sides[from], sides[to], 1000, nowMs));
    for (const side of sides) {
      expect(side.deadMs).toBeNull();
      expect(side.longestQuietMs).toBeLessThanOrEqual(QUIET_AT_MOST_MS);
    }
  }
});

it('bytes in one direction do not hide that a peer has stopped answering', () => {
  const [side, gone] = [sideOf(0), sideOf(500, { answers: false })];
  for (let nowMs = 100; side.deadMs === null && nowMs < 60_000; nowMs += 100) {
    send(side, gone, 1000, nowMs);
    if (nowMs % TICK_MS === 0) tick(side, gone, nowMs);
  }
  expect(side.deadMs).toBe(CARRIER_DEAD_AFTER_MS);
  expect(side.pings).toBe(2);
});

it('a carrier with streams is pinged in every interval, because the round trip is needed', () => {
  const liveness = new CarrierLiveness(0);
  liveness.heard(1000, CARRIER_PING_INTERVAL_MS);
  liveness.tick(1000, CARRIER_PING_INTERVAL_MS);
  expect(liveness.isPingDue(CARRIER_PING_INTERVAL_MS, false)).toBe(true);
});
