// The spend cap, with tunnels that really run and with those that an edge asks for.
import { eventually } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { Person } from '../platform/scene.ts';
import { connectWith, fateOf, openTunnel, startService, visitHttp } from '../platform/tunnels.ts';
import { row } from './rows.ts';
import { type BillingScene, CENT, SOON } from './scene.ts';

export const capRows = (scene: BillingScene): void => {
  it(row('Contract', 7), async () => {
    const [payer, edge] = [await scene.payer(), await scene.edge()];
    const key = await scene.newKey(payer);
    const fate = async (): Promise<string> => {
      const answer = await edge.open({ accountId: payer.id, keyId: key.id });
      return answer.ok ? 'open' : `${answer.code}: ${answer.message}`;
    };
    // The minimum of 300 is no usage.
    await scene.cap(payer, { spend_cap_cents: 100 });
    expect(await fate()).toBe('open');
    await scene.use(payer, 100 * CENT - 1);
    expect(await fate()).toBe('open');
    await scene.use(payer, 1);
    expect(await fate()).toBe('SPEND_CAP_REACHED: spend cap of $1.00 reached');
    await scene.cap(payer, { spend_cap_cents: 101 });
    expect(await fate()).toBe('open');
    await scene.cap(payer, { spend_cap_cents: 0 });
    expect(await fate()).toBe('SPEND_CAP_REACHED: spend cap of $0.00 reached');
    const unused = await scene.payer();
    await scene.cap(unused, { spend_cap_cents: 0 });
    const unusedKey = { accountId: unused.id, keyId: (await scene.newKey(unused)).id };
    expect(await edge.open(unusedKey)).toMatchObject({ code: 'SPEND_CAP_REACHED' });
  });

  it(row('Contract', 8), async () => {
    const payer = await scene.payer();
    const { tunnel, statuses, key } = await openTunnel(scene, payer);
    expect(await visitHttp(tunnel)).toBe(200);
    await scene.cap(payer, { spend_cap_cents: 12_345 });
    await scene.use(payer, 12_345 * CENT);
    const reached = { code: 'SPEND_CAP_REACHED', message: 'spend cap of $123.45 reached' };
    await eventually(() => expect(statuses.at(-1)).toMatchObject({ type: 'closed', fault: reached }), SOON);
    expect(await scene.server.tunnel(tunnel.tunnelId)).toBeUndefined();
    expect(await visitHttp(tunnel)).toBe(404);
    expect(await refusedWith(key.token)).toBe('SPEND_CAP_REACHED: spend cap of $123.45 reached');
    // It is the account's own usage that counts.
    const other = await openTunnel(scene, await scene.payer());
    expect(await visitHttp(other.tunnel)).toBe(200);
  });

  it.each([12_346, null])(row('Contract', 9, 'to %s'), async (cap) => {
    const payer = await scene.payer();
    const key = await scene.newKey(payer);
    await scene.cap(payer, { spend_cap_cents: 12_345 });
    await scene.use(payer, 12_345 * CENT);
    expect(await refusedWith(key.token)).toBe('SPEND_CAP_REACHED: spend cap of $123.45 reached');
    expect((await scene.cap(payer, { spend_cap_cents: cap })).status).toBe(200);
    expect(await refusedWith(key.token)).toBe('open');
  });

  it(row('Contract', 10), async () => {
    const [near, over] = await Promise.all([scene.payer(), scene.payer()]);
    await Promise.all([near, over].map((payer) => scene.cap(payer, { spend_cap_cents: 1000 })));
    await scene.use(near, 800 * CENT);
    await scene.use(over, 1000 * CENT);
    const [most, all] = ['80 % of your spend cap is used', 'Your spend cap of $10.00 is reached'];
    const told = async (): Promise<string[][]> => [await mailsAbout(near), await mailsAbout(over)];
    await eventually(async () => expect(await told()).toEqual([[most], [all]]), SOON);
    // Further, and another cap that is reached in the same month.
    await scene.use(near, 200 * CENT);
    await scene.cap(over, { spend_cap_cents: 1010 });
    await scene.use(over, 100 * CENT);
    await eventually(async () => expect(await told()).toEqual([[most, all], [all]]), SOON);
  });

  /** What a client with this key hears when it asks for a tunnel. */
  const refusedWith = async (token: string): Promise<string> => {
    const localPort = await startService(scene);
    const open = await connectWith(scene, token).catch((fault: { code: string; message: string }) => fault);
    return 'client' in open ? fateOf(open.client, { protocol: 'http', localPort }) : `${open.code}: ${open.message}`;
  };

  const mailsAbout = async ({ email }: Person): Promise<string[]> =>
    (await scene.mails(email)).map(({ subject = '' }) => subject).filter((subject) => subject.includes('spend cap'));
};
