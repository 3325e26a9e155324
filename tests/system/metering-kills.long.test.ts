// Test of kill -9 of the platform while it reports usage to the payment processor. tests/tools/billing/metering-kill.mjs is the long
// version.
import { expect, it } from 'vitest';
import { MeteringTrial } from './metering-trial.fixture.ts';

const KILLS = 3;

it('despite kills of the platform, the usage reported to the payment processor equals the actual usage to the byte', async () => {
  const trial = await MeteringTrial.open({ accounts: 3, random: Math.random });
  try {
    for (let kills = 0; kills < KILLS; kills += 1) await trial.killOnce();
    const { used, reported } = await trial.totals();
    expect(Math.min(...used)).toBeGreaterThan(0);
    expect(reported).toEqual(used);
  } finally {
    await trial.close();
  }
}, 300_000);
