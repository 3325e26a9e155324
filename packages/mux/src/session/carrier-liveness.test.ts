// The load figures of carriers, by which the carrier of the next stream is chosen.

import { expect, it } from 'vitest';
import { CARRIER_FIRST_PINGS, CARRIER_NEAR_UNDER_MS } from '../stream/flow-control.ts';
import { CARRIER_SHARED_STREAMS, CarrierLiveness } from './carrier-liveness.ts';

const MIB = 1024 * 1024;
const SHARED = CARRIER_SHARED_STREAMS;

const ofPath = (roundTripMs: number, pings: number = CARRIER_FIRST_PINGS): CarrierLiveness => {
  const liveness = new CarrierLiveness(0);
  for (let i = 0; i < pings; i++) liveness.onPong(100, 100 + roundTripMs);
  return liveness;
};

it.each([
  ['a path that nobody has measured', ofPath(0, CARRIER_FIRST_PINGS - 1)],
  ['a path that is not near', ofPath(CARRIER_NEAR_UNDER_MS)],
])('on %s each stream adds to the load', (_what, liveness) => {
  expect([0, 1, 2, 100].map((streams) => liveness.loadWith(streams, 0))).toEqual([0, 1, 2, 100]);
});

it('on a near path streams count in groups, not one by one', () => {
  const near = ofPath(CARRIER_NEAR_UNDER_MS - 1);
  expect([0, 1, SHARED - 1, SHARED, 2 * SHARED].map((streams) => near.loadWith(streams, 0))).toEqual([0, 0, 0, 1, 2]);
});

it('a bulk transfer adds load at once and through the following second, and none afterwards', () => {
  const near = ofPath(0);
  near.heard(2 * MIB, 0);
  expect(near.loadWith(1, MIB)).toBe(3);
  near.tick(MIB, 0);
  expect(near.loadWith(1, MIB)).toBe(3);
  near.tick(MIB, 0);
  expect(near.loadWith(1, MIB)).toBe(0);
});

it('load is counted in steps, so that a few frames do not change the carrier', () => {
  for (const liveness of [ofPath(0), ofPath(100)]) {
    liveness.heard(MIB / 8 - 1, 0);
    expect(liveness.loadWith(0, 0)).toBe(0);
    liveness.heard(1, 0);
    expect(liveness.loadWith(0, 0)).toBe(0.125);
  }
});
