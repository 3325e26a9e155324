import { expect, it } from 'vitest';
import type { ControlLink } from '../connection/control-link.ts';
import { pingControl } from './pings.ts';

/** A control connection with the given round-trip times; further pings get no response. */
const linkOf = (...times: number[]): ControlLink =>
  ({
    roundTrip: () => {
      const time = times.shift();
      return time === undefined ? new Promise<number>(() => {}) : Promise.resolve(time);
    },
  }) as ControlLink;

it('aborted pings return the times that were measured before the abort', async () => {
  const stop = new AbortController();
  const times = pingControl(linkOf(3, 4), stop.signal);
  setImmediate(() => stop.abort());
  expect(await times).toEqual([3, 4]);
});

it('pings return no times when aborted before the start', async () => {
  expect(await pingControl(linkOf(), AbortSignal.abort())).toEqual([]);
});
