// The API under two floods at once. A busy machine makes every time longer, so that times are only told apart by much; that each call is served, and that
// the flood is refused, does not depend on it. The times themselves: tests/tools/platform/api-flood.mjs.
import { expect, it } from 'vitest';
import { ApiFlood, MEASURED, percentile, type Sample } from './api-flood.fixture.ts';

const SIZES = { account: 1500, strangers: 1000 };
const ROUNDS = 10;
/** How much longer half of a tenant's calls may take than without the floods, whose own programs take the machine's time as well. */
const SLOWER = 10;
const LEAST_MS = 300;

it('API calls, registrations and first authentications of a tenant succeed during a flood of 1,500 connections of another account and 1,000 anonymous connections', async () => {
  const trial = await ApiFlood.open();
  try {
    const measure = async (): Promise<Sample[]> => {
      const samples: Sample[] = [];
      for (let round = 0; round < ROUNDS; round += 1) samples.push(...(await trial.round()));
      return samples;
    };
    await trial.round();
    const quiet = await measure();
    await trial.flood(SIZES);
    const loud = await measure();
    expect(loud.filter(({ isServed }) => !isServed)).toEqual([]);
    for (const what of MEASURED) {
      const bound = Math.max(LEAST_MS, SLOWER * percentile(quiet, what, 0.5));
      expect([what, percentile(loud, what, 0.5) < bound]).toEqual([what, true]);
    }
    const metrics = await trial.metrics();
    expect(metrics).toMatch(/^tunnel_api_refused_total\{reason="account"\} [1-9]/m);
    expect(metrics).toMatch(/^tunnel_api_refused_total\{reason="network"\} [1-9]/m);
    const [account = {}, strangers = {}] = await trial.calm();
    // The flood is served as well, and nobody of it sees anything but an answer or the limit.
    expect([account['200'] ?? 0, strangers['400'] ?? 0].every((count) => count > 0)).toBe(true);
    const odd = Object.keys({ ...account, ...strangers }).filter((status) => !['200', '400', '429'].includes(status));
    expect(odd).toEqual([]);
  } finally {
    await trial.close();
  }
}, 300_000);
