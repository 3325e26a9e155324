// TLS handshakes per network: limited only while the process is late, to a rate per second, independent of other networks.

import { randomCases, seededRandom } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { Admission, HANDSHAKES, Ticket } from './admission.ts';

const LATE = HANDSHAKES.lateMs + 1;

const admissionOf = (handshakesPerSecond: number): Admission =>
  new Admission({ limits: { visitors: 10, control: 10, api: 10 }, perNetwork: 10, handshakesPerSecond });

const begins = (admission: Admission, network: string | null, lateMs: number, now: number): boolean =>
  admission.handshakeBegins(new Ticket('https', network, now, false), lateMs, now);

const begun = (admission: Admission, network: string | null, tries: number, lateMs: number, now: number): number => {
  let count = 0;
  for (let index = 0; index < tries; index += 1) if (begins(admission, network, lateMs, now)) count += 1;
  return count;
};

it('TLS handshakes are not limited while the process responds in time', () => {
  const admission = admissionOf(50);
  expect(begun(admission, 'a', 10_000, HANDSHAKES.lateMs, 0)).toBe(10_000);
  expect([begun(admission, 'a', 1000, LATE, 0), admission.refusals.get('handshake-rate')]).toEqual([200, 800]);
});

it('while the process is late, a network may start a burst of TLS handshakes, then a fixed number per second', () => {
  const admission = admissionOf(50);
  expect(begun(admission, 'a', 1000, LATE, 0)).toBe(200);
  expect(begun(admission, 'a', 1000, LATE, 1000)).toBe(50);
  expect(begun(admission, 'b', 1000, LATE, 1000)).toBe(200);
});

it('TLS handshakes are unlimited if the limit is 0, and for a trusted proxy', () => {
  expect(begun(admissionOf(0), 'a', 10_000, 60_000, 0)).toBe(10_000);
  expect(begun(admissionOf(50), null, 10_000, LATE, 0)).toBe(10_000);
});

it.each(Array.from({ length: randomCases(60) }, (_, seed) => seed))(
  'while the process is late, a network never starts more TLS handshakes than its burst and rate, case %i',
  (seed) => {
    const random = seededRandom(seed);
    const admission = admissionOf(10);
    const times = new Map<string, number[]>();
    let now = 0;
    for (let step = 0; step < 400; step += 1) {
      now += random() * 60;
      const network = random() < 0.5 ? 'a' : 'b';
      const isLate = random() < 0.8;
      const may = begins(admission, network, isLate ? LATE : 0, now);
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
