import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PAST_DUE_GRACE_MS } from '../../billing/rules/subscription.rules.ts';
import { suspend } from '../accounts/account-standing.ts';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  OPERATOR,
  questionOf,
} from '../edges/link.fixture.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { addBilledAccount, setMetered } from './billed-account.fixture.ts';
import { setSpendCap } from './spend-cap.ts';

const CENT = 100_000_000;
const JULY = Date.UTC(2030, 6, 1);
const FIVE_DOLLARS = { ok: false, code: 'SPEND_CAP_REACHED', message: 'spend cap of $5.00 reached' };

let fixture: LinkFixture;
let edge: Edge;
beforeAll(async () => {
  fixture = await createLinkFixture();
  edge = await addEdge(fixture);
});
beforeEach(() => fixture.clock.setWallClock(NOON));
afterAll(() => fixture.close());

const open = (account: Account) => openTunnel(fixture, edge.actor, questionOf(edge, account));
const setCap = ({ accountId }: Account, spend_cap_cents: number | null) =>
  setSpendCap(fixture, { kind: 'user', userId: accountId }, { spend_cap_cents });

describe('an account over its spend cap', () => {
  it('cannot open a tunnel from the exact cent that reaches the cap', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await setMetered(fixture.db, account.accountId, 500 * CENT - 1);
    expect(await open(account)).toEqual({ ok: true });
    await setMetered(fixture.db, account.accountId, 500 * CENT);
    const question = questionOf(edge, account);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual(FIVE_DOLLARS);
    expect(await entryOf(fixture.db, question.tunnel_id)).toBeUndefined();
  });

  it('cannot resume a tunnel either', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    const question = questionOf(edge, account);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
    await setMetered(fixture.db, account.accountId, 500 * CENT);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual(FIVE_DOLLARS);
  });

  it('can open tunnels at once after the cap was raised or removed', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await setMetered(fixture.db, account.accountId, 500 * CENT);
    expect(await open(account)).toMatchObject({ ok: false });
    await setCap(account, 501);
    expect(await open(account)).toEqual({ ok: true });
    await setCap(account, 100);
    expect(await open(account)).toMatchObject({ message: 'spend cap of $1.00 reached' });
    await setCap(account, null);
    expect(await open(account)).toEqual({ ok: true });
  });

  it('can open tunnels again in the next UTC month', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await setMetered(fixture.db, account.accountId, 900 * CENT);
    fixture.clock.setWallClock(JULY - 1);
    expect(await open(account)).toEqual(FIVE_DOLLARS);
    fixture.clock.setWallClock(JULY);
    expect(await open(account)).toEqual({ ok: true });
  });

  it('is refused with a cap of 0, but not on a plan without a price or without a cap', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 0 });
    expect(await open(account)).toMatchObject({ code: 'SPEND_CAP_REACHED', message: 'spend cap of $0.00 reached' });
    await fixture.db.updateTable('users').set({ plan: 'free' }).where('id', '=', account.accountId).execute();
    expect(await open(account)).toEqual({ ok: true });
    expect(await open(await addAccount(fixture.db, 'payg'))).toEqual({ ok: true });
  });

  it('gets a suspension or a revoked key as the reason first', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 0 });
    await fixture.db.updateTable('api_keys').set({ status: 'revoked' }).where('id', '=', account.keyId).execute();
    expect(await open(account)).toMatchObject({ code: 'AUTH_TOKEN_REVOKED' });
    await fixture.db.updateTable('api_keys').set({ status: 'active' }).where('id', '=', account.keyId).execute();
    await suspend(fixture, OPERATOR, account.email);
    expect(await open(account)).toMatchObject({ code: 'ACCOUNT_SUSPENDED' });
  });
});

describe('a past-due account', () => {
  it('can open tunnels for seven days, then neither open nor resume a tunnel', async () => {
    const account = await addBilledAccount(fixture.db, { pastDueSince: NOON });
    const question = questionOf(edge, account);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
    fixture.clock.setWallClock(NOON + PAST_DUE_GRACE_MS - 1);
    expect(await open(account)).toEqual({ ok: true });
    fixture.clock.setWallClock(NOON + PAST_DUE_GRACE_MS);
    const message = 'the account is past due: a payment failed more than 7 days ago';
    const refused = { ok: false, code: 'ACCOUNT_PAST_DUE', message };
    expect(await open(account)).toEqual(refused);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual(refused);
  });

  it('can open tunnels again once it has paid', async () => {
    const account = await addBilledAccount(fixture.db, { pastDueSince: NOON - PAST_DUE_GRACE_MS });
    expect(await open(account)).toMatchObject({ code: 'ACCOUNT_PAST_DUE' });
    await fixture.db
      .updateTable('billing_accounts')
      .set({ past_due_since: null, subscription_status: 'active' })
      .where('user_id', '=', account.accountId)
      .execute();
    expect(await open(account)).toEqual({ ok: true });
  });
});
