import { appendFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SimulatorScene } from './simulator.fixture.ts';

let scene: SimulatorScene;

beforeEach(async () => {
  scene = await SimulatorScene.open();
});
afterEach(() => scene.close());

describe('the simulator after a restart', () => {
  it('has everything as it was: customers, cards, subscriptions, usage, its clock, its secrets', async () => {
    const { customerId } = await scene.subscriber();
    const at = Date.now();
    await scene.processor.reportUsage({ identifier: 'one', customerId, bytes: 31_000_000_000, at });
    await scene.control('/clock', { advance_secs: 3600 });
    const before = await scene.processor.readCustomer(customerId);
    const secrets = [scene.simulator.secretKey.reveal(), scene.simulator.webhookSecret.reveal()];
    await scene.restart();
    await scene.restart();
    expect(await scene.processor.readCustomer(customerId)).toEqual(before);
    expect(await scene.processor.meteredBytes({ customerId, from: at, to: at + 1 })).toBe(31_000_000_000);
    // Its identifier is still known.
    await scene.processor.reportUsage({ identifier: 'one', customerId, bytes: 31_000_000_000, at });
    const state = (await (await fetch(`${scene.simulator.url}/_sim`)).json()) as { ahead_secs: number };
    expect(state.ahead_secs).toBe(3600);
    expect([scene.simulator.secretKey.reveal(), scene.simulator.webhookSecret.reveal()]).toEqual(secrets);
    await scene.endMonth();
    expect(await scene.processor.invoices(customerId)).toMatchObject([{ total: 310, status: 'paid' }]);
  });

  it('answers a call that was lost between its writing and its answer as it would have then', async () => {
    const customerId = await scene.customerWithCard();
    const form = { customer: customerId, return_url: 'https://platform.example/' };
    const first = await scene.call('POST', '/v1/billing_portal/sessions', form, 'key-1');
    await scene.crash();
    const again = await scene.call('POST', '/v1/billing_portal/sessions', form, 'key-1');
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.json()).toEqual(await first.json());
    const order = { customerId, userId: 'u', idempotencyKey: 'subscribe:u:1' };
    const made = await scene.processor.subscribe(order);
    await scene.crash();
    expect(await scene.processor.subscribe(order)).toEqual(made);
    const all = (await (await scene.call('GET', `/v1/subscriptions?customer=${customerId}&status=all`)).json()) as {
      data: unknown[];
    };
    expect(all.data).toHaveLength(1);
  });

  it('forgets a line that was cut off while it was written', async () => {
    const { customerId } = await scene.subscriber();
    const before = await scene.processor.readCustomer(customerId);
    await scene.crash((folder) => appendFile(join(folder, 'journal.jsonl'), '[["customers","cus_half",{"id":"cus_h'));
    expect(await scene.processor.readCustomer(customerId)).toEqual(before);
    const { customerId: next } = await scene.subscriber();
    await scene.crash();
    expect(await scene.processor.readCustomer(next)).not.toBeNull();
  });

  it('finishes the month that it was killed in', async () => {
    const { customerId } = await scene.subscriber();
    let drafted = false;
    scene.respond = ({ type }) => {
      drafted ||= type === 'invoice.created';
      return type === 'invoice.created' ? 503 : 200;
    };
    const lost = scene.endMonth().catch(() => {});
    await eventually(() => expect(drafted).toBe(true));
    expect(await scene.processor.invoices(customerId)).toMatchObject([{ status: 'draft' }]);
    await scene.crash();
    await lost;
    scene.respond = () => 200;
    await eventually(async () =>
      expect(await scene.processor.invoices(customerId)).toMatchObject([{ status: 'paid', total: 300 }]),
    );
  });

  it('keeps its files from other eyes', async () => {
    await scene.subscriber();
    expect((await stat(scene.folder)).mode & 0o777).toBe(0o700);
    for (const name of await readdir(scene.folder)) {
      expect((await stat(join(scene.folder, name))).mode & 0o777).toBe(0o600);
    }
  });
});
