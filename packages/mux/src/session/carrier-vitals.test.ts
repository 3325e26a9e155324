// Where the next stream goes, by numbers: what one carrier weighs against another.
import { expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { CarrierVitals } from './carrier-vitals.ts';

const MIB = 1024 * 1024;
const SHARED = MUX_LIMITS.CARRIER_SHARED_STREAMS;

const ofPath = (roundTripMs: number, pings: number = MUX_LIMITS.CARRIER_FIRST_PINGS): CarrierVitals => {
  const vitals = new CarrierVitals(0);
  for (let i = 0; i < pings; i++) vitals.onPong(100, 100 + roundTripMs);
  return vitals;
};

it.each([
  ['a path that nobody has measured', ofPath(0, MUX_LIMITS.CARRIER_FIRST_PINGS - 1)],
  ['a path that is not near', ofPath(MUX_LIMITS.CARRIER_NEAR_UNDER_MS)],
])('on %s each stream weighs', (_what, vitals) => {
  expect([0, 1, 2, 100].map((streams) => vitals.loadWith(streams, 0))).toEqual([0, 1, 2, 100]);
});

it('on a near path streams weigh together, up to a bound', () => {
  const near = ofPath(MUX_LIMITS.CARRIER_NEAR_UNDER_MS - 1);
  expect([0, 1, SHARED - 1, SHARED, 2 * SHARED].map((streams) => near.loadWith(streams, 0))).toEqual([0, 0, 0, 1, 2]);
});

it('bulk weighs at once, through the second behind it, and no longer', () => {
  const near = ofPath(0);
  near.heard(2 * MIB, 0);
  expect(near.loadWith(1, MIB)).toBe(3);
  near.tick(MIB);
  expect(near.loadWith(1, MIB)).toBe(3);
  near.tick(MIB);
  expect(near.loadWith(1, MIB)).toBe(0);
});

it('a few frames more or less send nobody to another carrier', () => {
  for (const vitals of [ofPath(0), ofPath(100)]) {
    vitals.heard(MIB / 8 - 1, 0);
    expect(vitals.loadWith(0, 0)).toBe(0);
    vitals.heard(1, 0);
    expect(vitals.loadWith(0, 0)).toBe(0.125);
  }
});
