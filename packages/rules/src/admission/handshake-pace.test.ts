// TLS handshakes of a network: counted while the process is late, so many a second, and never for another network.

import { randomCases, seededRandom } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { RULE_LIMITS } from '../limits.ts';
import { HandshakePace } from './handshake-pace.ts';

const LATE = RULE_LIMITS.HANDSHAKE_LATE_MS + 1;

const begun = (pace: HandshakePace, network: string, tries: number, lateMs: number, now: number): number => {
  let count = 0;
  for (let index = 0; index < tries; index += 1) if (pace.begins(network, lateMs, now)) count += 1;
  return count;
};

it('counts nothing while the process is in time', () => {
  const pace = new HandshakePace(50);
  expect(begun(pace, 'a', 10_000, RULE_LIMITS.HANDSHAKE_LATE_MS, 0)).toBe(10_000);
  expect(pace.size).toBe(0);
});

it('lets a network begin the burst, then so many a second, while the process is late', () => {
  const pace = new HandshakePace(50);
  expect(begun(pace, 'a', 1000, LATE, 0)).toBe(200);
  expect(begun(pace, 'a', 1000, LATE, 1000)).toBe(50);
  expect(begun(pace, 'b', 1000, LATE, 1000)).toBe(200);
});

it('has no bound when it is 0', () => {
  expect(begun(new HandshakePace(0), 'a', 10_000, 60_000, 0)).toBe(10_000);
});

it('remembers so many networks and no more', () => {
  const pace = new HandshakePace(50);
  for (let network = 0; network < RULE_LIMITS.HANDSHAKE_NETWORKS_MAX + 100; network += 1)
    pace.begins(`${network}`, LATE, 0);
  expect(pace.size).toBe(RULE_LIMITS.HANDSHAKE_NETWORKS_MAX);
});

it.each(Array.from({ length: randomCases(60) }, (_, seed) => seed))(
  'never lets a network begin more than its burst and its rate, case %i',
  (seed) => {
    const random = seededRandom(seed);
    const pace = new HandshakePace(10);
    const times = new Map<string, number[]>();
    let now = 0;
    for (let step = 0; step < 400; step += 1) {
      now += random() * 60;
      const network = random() < 0.5 ? 'a' : 'b';
      const isLate = random() < 0.8;
      const may = pace.begins(network, isLate ? LATE : 0, now);
      if (!isLate) expect(may).toBe(true);
      else if (may) times.set(network, [...(times.get(network) ?? []), now]);
    }
    for (const taken of times.values()) {
      const isOver = taken.some((from, first) =>
        taken.slice(first).some((to, more) => more + 1 > 41 + ((to - from) * 10) / 1000),
      );
      expect(isOver).toBe(false);
    }
  },
);
