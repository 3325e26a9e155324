// Unusual prices: the invoice is still max(minimum, usage).

import { SILENT, SimulatorHarness } from '@tunnel/simulator/fixture';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createProcessor } from './create-processor.ts';
import type { Processor } from './processor.ts';
import { accessOf } from './simulated-processor.fixture.ts';

let simulated: SimulatorHarness;

beforeEach(async () => {
  simulated = await SimulatorHarness.open();
});
afterEach(() => simulated.close());

const processorWith = (minimumCents: number, priceCentsPerGb: number): Processor =>
  createProcessor({
    ...accessOf(simulated),
    prices: { minimumCents, priceCentsPerGb },
    logger: SILENT,
  });

describe('prices', () => {
  it.each([
    [300, 10, 31_230_000_000],
    [0, 10, 1_230_000_000],
    [300, 7, 50_000_000_000],
    [300, 7, 49_999_999_999],
    [300, 7, 42_857_142_858],
    [100, 3, 33_333_333_334],
    [500, 0, 99_000_000_000],
    [0, 0, 99_000_000_000],
    [1, 123_456_789, 1_000_000_000],
  ])(
    'invoices charge the maximum of minimum and usage: a minimum of %i cents, %i cents a GB, %i bytes',
    async (minimumCents, priceCentsPerGb, bytes) => {
      const processor = processorWith(minimumCents, priceCentsPerGb);
      const customerId = await simulated.customerWithCard();
      await processor.subscribe({ customerId, userId: 'u', idempotencyKey: 's' });
      await processor.reportUsage({ identifier: 'one', customerId, bytes, at: Date.now() });
      await simulated.endMonth();
      const usage = Number((BigInt(bytes) * BigInt(priceCentsPerGb)) / 10n ** 9n);
      expect(await processor.invoices(customerId)).toMatchObject([{ total: Math.max(minimumCents, usage) }]);
    },
  );

  it('are created once, even by concurrent processes, and reused later', async () => {
    const all = [1, 2, 3].map(() => processorWith(300, 10));
    const customers: string[] = [];
    for (const _ of all) customers.push(await simulated.customerWithCard());
    const order = (index: number) => ({ customerId: customers[index]!, userId: 'u', idempotencyKey: `s${index}` });
    await Promise.all(all.map((processor, index) => processor.subscribe(order(index))));
    await processorWith(300, 10).subscribe({ ...order(0), idempotencyKey: 'later' });
    const { data } = (await (await simulated.call('GET', '/v1/prices')).json()) as { data: { lookup_key: string }[] };
    expect(data.map(({ lookup_key }) => lookup_key).sort()).toEqual([
      'tunnel_payg_bytes_10_300',
      'tunnel_payg_minimum_300',
    ]);
    const meters = (await (await simulated.call('GET', '/v1/billing/meters')).json()) as { data: unknown[] };
    expect(meters.data).toHaveLength(1);
  });
});
