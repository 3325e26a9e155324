// Tests of the API under two floods at once. All times grow on a busy machine, so the bounds are wide. Whether calls are served and the
// flood is refused does not depend on the load. tests/tools/platform/api-flood.mjs measures exact times.
import { expect, it } from 'vitest';
import { ApiFlood, MEASURED, percentile, type Sample } from './api-flood.fixture.ts';

const SIZES = { account: 1500, strangers: 1000 };
const ROUNDS = 10;
/**
 * Maximum factor by which the median call of a tenant may slow down under the floods. The factor is large because the flooding programs
 * use the same CPU.
 */
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
    // The flood is partly served as well. Its calls get only regular responses or the limit, no other status.
    expect([account['200'] ?? 0, strangers['400'] ?? 0].every((count) => count > 0)).toBe(true);
    const odd = Object.keys({ ...account, ...strangers }).filter((status) => !['200', '400', '429'].includes(status));
    expect(odd).toEqual([]);
  } finally {
    await trial.close();
  }
}, 300_000);
