// The spend cap, tested with running tunnels and with admission requests of an edge.
import { eventually } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { Person } from '../platform/platform-harness.fixture.ts';
import { connectWith, fateOf, openTunnel, startService, visitHttp } from '../platform/tunnels.fixture.ts';
import { type BillingHarness, CENT, SOON } from './billing-harness.fixture.ts';
import { row } from './rows.fixture.ts';

export const capRows = (harness: BillingHarness): void => {
  it(row('Contract', 7), async () => {
    const payer = await harness.payer();
    const edge = await harness.edge();
    const key = await harness.newKey(payer);
    const fate = async (): Promise<string> => {
      const answer = await edge.open({ accountId: payer.id, keyId: key.id });
      return answer.ok ? 'open' : `${answer.code}: ${answer.message}`;
    };
    // The minimum charge of 300 cents does not count as usage.
    await harness.cap(payer, { spend_cap_cents: 100 });
    expect(await fate()).toBe('open');
    await harness.reportUsage(payer, 100 * CENT - 1);
    expect(await fate()).toBe('open');
    await harness.reportUsage(payer, 1);
    expect(await fate()).toBe('SPEND_CAP_REACHED: spend cap of $1.00 reached');
    await harness.cap(payer, { spend_cap_cents: 101 });
    expect(await fate()).toBe('open');
    await harness.cap(payer, { spend_cap_cents: 0 });
    expect(await fate()).toBe('SPEND_CAP_REACHED: spend cap of $0.00 reached');
    const unused = await harness.paygPerson();
    await harness.cap(unused, { spend_cap_cents: 0 });
    const unusedKey = { accountId: unused.id, keyId: (await harness.newKey(unused)).id };
    expect(await edge.open(unusedKey)).toMatchObject({ code: 'SPEND_CAP_REACHED' });
  });

  it(row('Contract', 8), async () => {
    const payer = await harness.payer();
    const { tunnel, statuses, key } = await openTunnel(harness, payer);
    expect(await visitHttp(tunnel)).toBe(200);
    await harness.cap(payer, { spend_cap_cents: 12_345 });
    await harness.reportUsage(payer, 12_345 * CENT);
    const reached = { code: 'SPEND_CAP_REACHED', message: 'spend cap of $123.45 reached' };
    await eventually(() => expect(statuses.at(-1)).toMatchObject({ type: 'closed', fault: reached }), SOON);
    expect(await harness.server.tunnel(tunnel.tunnelId)).toBeUndefined();
    expect(await visitHttp(tunnel)).toBe(404);
    expect(await refusedWith(key.token)).toBe('SPEND_CAP_REACHED: spend cap of $123.45 reached');
    // Only the account's usage counts toward its cap.
    const other = await openTunnel(harness, await harness.paygPerson());
    expect(await visitHttp(other.tunnel)).toBe(200);
  });

  it.each([12_346, null])(row('Contract', 9, 'to %s'), async (cap) => {
    const payer = await harness.paygPerson();
    const key = await harness.newKey(payer);
    await harness.cap(payer, { spend_cap_cents: 12_345 });
    await harness.reportUsage(payer, 12_345 * CENT);
    expect(await refusedWith(key.token)).toBe('SPEND_CAP_REACHED: spend cap of $123.45 reached');
    expect((await harness.cap(payer, { spend_cap_cents: cap })).status).toBe(200);
    expect(await refusedWith(key.token)).toBe('open');
  });

  it(row('Contract', 10), async () => {
    const [near, over] = await Promise.all([harness.paygPerson(), harness.paygPerson()]);
    await Promise.all([near, over].map((payer) => harness.cap(payer, { spend_cap_cents: 1000 })));
    await harness.reportUsage(near, 800 * CENT);
    await harness.reportUsage(over, 1000 * CENT);
    const most = '80 % of your spend limit used';
    const all = 'Spend limit of $10.00 reached';
    const told = async (): Promise<string[][]> => [await mailsAbout(near), await mailsAbout(over)];
    await eventually(async () => expect(await told()).toEqual([[most], [all]]), SOON);
    // More usage, and a second cap that is reached in the same month.
    await harness.reportUsage(near, 200 * CENT);
    await harness.cap(over, { spend_cap_cents: 1010 });
    await harness.reportUsage(over, 100 * CENT);
    await eventually(async () => expect(await told()).toEqual([[most, all], [all]]), SOON);
  });

  /** Returns the error of a client that requests a tunnel with this key. */
  const refusedWith = async (token: string): Promise<string> => {
    const localPort = await startService(harness);
    const open = await connectWith(harness, token).catch((fault: { code: string; message: string }) => fault);
    return 'client' in open ? fateOf(open.client, { protocol: 'http', localPort }) : `${open.code}: ${open.message}`;
  };

  const mailsAbout = async ({ email }: Person): Promise<string[]> =>
    (await harness.mails(email)).map(({ subject = '' }) => subject).filter((subject) => /spend limit/i.test(subject));
};
