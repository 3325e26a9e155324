import { appendFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SimulatorHarness } from './simulator.fixture.ts';

let harness: SimulatorHarness;

beforeEach(async () => {
  harness = await SimulatorHarness.open();
});
afterEach(() => harness.close());

describe('the simulator after a restart', () => {
  it('keeps customers, cards, subscriptions, usage, clock and secrets', async () => {
    const { customerId } = await harness.subscriber();
    const at = Date.now();
    await harness.reportUsage(customerId, 31_000_000_000, 'one', at);
    await harness.control('/clock', { advance_secs: 3600 });
    const before = await harness.customerState(customerId);
    const secrets = [harness.simulator.secretKey.reveal(), harness.simulator.webhookSecret.reveal()];
    await harness.restart();
    await harness.restart();
    expect(await harness.customerState(customerId)).toEqual(before);
    const minute = Math.floor(at / 60_000) * 60;
    const range = { customer: customerId, start_time: minute, end_time: minute + 60 };
    const { data: sums } = await harness.stripe.billing.meters.listEventSummaries(await harness.meter(), range);
    expect(sums).toMatchObject([{ aggregated_value: 31_000_000_000 }]);
    // The identifier of the reported usage survives the restart, so a second report is a duplicate.
    const again = harness.reportUsage(customerId, 31_000_000_000, 'one', at);
    await expect(again).rejects.toMatchObject({ code: 'duplicate_meter_event' });
    const state = (await (await fetch(`${harness.simulator.url}/_sim`)).json()) as { ahead_secs: number };
    expect(state.ahead_secs).toBe(3600);
    expect([harness.simulator.secretKey.reveal(), harness.simulator.webhookSecret.reveal()]).toEqual(secrets);
    await harness.endMonth();
    expect(await harness.invoices(customerId)).toMatchObject([{ total: 310, status: 'paid' }]);
  });

  it('answers a retried call from the journal when the first response was lost', async () => {
    const customerId = await harness.customerWithCard();
    const form = { customer: customerId, return_url: 'https://platform.example/' };
    const first = await harness.call('POST', '/v1/billing_portal/sessions', form, 'key-1');
    await harness.crash();
    const again = await harness.call('POST', '/v1/billing_portal/sessions', form, 'key-1');
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.json()).toEqual(await first.json());
    const made = await harness.subscribe(customerId, 'subscribe:u:1');
    await harness.crash();
    expect(await harness.subscribe(customerId, 'subscribe:u:1')).toEqual(made);
    const all = (await (await harness.call('GET', `/v1/subscriptions?customer=${customerId}&status=all`)).json()) as {
      data: unknown[];
    };
    expect(all.data).toHaveLength(1);
  });

  it('ignores an incomplete last line of the journal', async () => {
    const { customerId } = await harness.subscriber();
    const before = await harness.customerState(customerId);
    await harness.crash((folder) => appendFile(join(folder, 'journal.jsonl'), '[["customers","cus_half",{"id":"cus_h'));
    expect(await harness.customerState(customerId)).toEqual(before);
    const { customerId: next } = await harness.subscriber();
    await harness.crash();
    expect(await harness.customerState(next)).toMatchObject({ subscriptions: [{ status: 'active' }] });
  });

  it('finishes the month end that was interrupted', async () => {
    const { customerId } = await harness.subscriber();
    let drafted = false;
    harness.respond = ({ type }) => {
      drafted ||= type === 'invoice.created';
      return type === 'invoice.created' ? 503 : 200;
    };
    const lost = harness.endMonth().catch(() => {});
    await eventually(() => expect(drafted).toBe(true));
    expect(await harness.invoices(customerId)).toMatchObject([{ status: 'draft' }]);
    await harness.crash();
    await lost;
    harness.respond = () => 200;
    await eventually(async () =>
      expect(await harness.invoices(customerId)).toMatchObject([{ status: 'paid', total: 300 }]),
    );
  });

  it('keeps its files readable by its owner only', async () => {
    await harness.subscriber();
    expect((await stat(harness.folder)).mode & 0o777).toBe(0o700);
    for (const name of await readdir(harness.folder)) {
      expect((await stat(join(harness.folder, name))).mode & 0o777).toBe(0o600);
    }
  });
});
