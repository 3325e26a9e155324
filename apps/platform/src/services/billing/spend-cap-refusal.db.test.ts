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

describe('an account that has reached its spend cap', () => {
  it('opens no tunnel, from the cent on that reaches it', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await setMetered(fixture.db, account.accountId, 500 * CENT - 1);
    expect(await open(account)).toEqual({ ok: true });
    await setMetered(fixture.db, account.accountId, 500 * CENT);
    const question = questionOf(edge, account);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual(FIVE_DOLLARS);
    expect(await entryOf(fixture.db, question.tunnel_id)).toBeUndefined();
  });

  it('gets none back either', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    const question = questionOf(edge, account);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
    await setMetered(fixture.db, account.accountId, 500 * CENT);
    expect(await openTunnel(fixture, edge.actor, question)).toEqual(FIVE_DOLLARS);
  });

  it('opens at once when the cap is raised or removed', async () => {
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

  it('opens again with the next month in UTC', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 500 });
    await setMetered(fixture.db, account.accountId, 900 * CENT);
    fixture.clock.setWallClock(JULY - 1);
    expect(await open(account)).toEqual(FIVE_DOLLARS);
    fixture.clock.setWallClock(JULY);
    expect(await open(account)).toEqual({ ok: true });
  });

  it('is everybody with a cap of 0, and nobody on a plan without a price', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 0 });
    expect(await open(account)).toMatchObject({ code: 'SPEND_CAP_REACHED', message: 'spend cap of $0.00 reached' });
    await fixture.db.updateTable('users').set({ plan: 'free' }).where('id', '=', account.accountId).execute();
    expect(await open(account)).toEqual({ ok: true });
    expect(await open(await addAccount(fixture.db, 'payg'))).toEqual({ ok: true });
  });

  it('hears first that it is suspended, or that its key was revoked', async () => {
    const account = await addBilledAccount(fixture.db, { capCents: 0 });
    await fixture.db.updateTable('api_keys').set({ status: 'revoked' }).where('id', '=', account.keyId).execute();
    expect(await open(account)).toMatchObject({ code: 'AUTH_TOKEN_REVOKED' });
    await fixture.db.updateTable('api_keys').set({ status: 'active' }).where('id', '=', account.keyId).execute();
    await suspend(fixture, OPERATOR, account.email);
    expect(await open(account)).toMatchObject({ code: 'ACCOUNT_SUSPENDED' });
  });
});

describe('an account that is past due', () => {
  it('goes on for seven days; then new tunnels are refused, and none that it has comes back', async () => {
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

  it('opens again when it has paid', async () => {
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
