import type { ServerConfig } from '@tunnel/config/server';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLinkServer, HeardChanges, type LinkServer } from '../../http/routes/edges/edge-link.fixture.ts';
import { type Account, addAccount, addEdge, type LinkFixture } from '../edges/link.fixture.ts';
import { PLAN_CHANGES_MAX, upsertPlans } from './plans.ts';

type Plans = ServerConfig['platform']['plans'];

const FREE = { tunnel_limit: 10, allow_custom_subdomains: false, monthly_minimum_cents: 0, price_cents_per_gb: 0 };
const PAYG = { allow_custom_subdomains: true, monthly_minimum_cents: 300, price_cents_per_gb: 10 };

let fixture: LinkFixture;
let server: LinkServer;
let stop: () => Promise<void>;
let heard: HeardChanges;
let accounts: { readonly free: Account; readonly payg: Account };
beforeEach(async () => {
  ({ fixture, server, stop } = await createLinkServer());
  accounts = { free: await addAccount(fixture.db), payg: await addAccount(fixture.db, 'payg') };
  heard = await HeardChanges.from(server.url, (await addEdge(fixture)).credential, 0);
});
afterEach(async () => {
  heard.hangUp();
  await stop();
});

const start = (plans: Plans) => upsertPlans(fixture.db, plans);
const planRow = (name: string) =>
  fixture.db.selectFrom('plans').selectAll().where('name', '=', name).executeTakeFirst();

it('plans of the configuration are written, and plans no longer in the configuration stay', async () => {
  await start({ free: { ...FREE, tunnel_limit: 1, domain_limit: 2 }, team: { ...PAYG, tunnel_limit: 50 } });
  expect(await planRow('free')).toMatchObject({ tunnel_limit: 1, domain_limit: 2 });
  expect(await planRow('team')).toMatchObject({ tunnel_limit: 50, domain_limit: null, price_cents_per_gb: 10 });
  expect(await planRow('payg')).toMatchObject({ tunnel_limit: null });
});

it('edges are notified exactly of accounts with a changed plan', async () => {
  await start({ free: FREE, payg: PAYG });
  await start({ free: { ...FREE, tunnel_limit: 2 }, payg: { ...PAYG, price_cents_per_gb: 11 } });
  expect(await heard.until(1)).toMatchObject([
    {
      kind: 'account-changed',
      account: { account_id: accounts.free.accountId, plan: 'free', tunnel_limit: 2, allow_custom_subdomains: false },
    },
  ]);
  await start({ free: { ...FREE, tunnel_limit: 2 }, payg: { ...PAYG, allow_custom_subdomains: false } });
  await start({ free: { ...FREE, tunnel_limit: 2 }, payg: { ...PAYG, allow_custom_subdomains: false } });
  const news = await heard.until(2);
  expect(news).toHaveLength(2);
  expect(news[1]).toMatchObject({ kind: 'account-changed', account: { account_id: accounts.payg.accountId } });
});

it('edges get forget instead of notices if a plan change affects too many accounts', async () => {
  await sql`
    insert into users (email, plan) select 'u' || n || '@example.com', 'free' from generate_series(1, ${PLAN_CHANGES_MAX}::int) n
  `.execute(fixture.db);
  await start({ free: { ...FREE, tunnel_limit: 2 } });
  expect(await heard.until(1)).toMatchObject([{ kind: 'forget' }]);
});

it('concurrent starts write plans without conflict and notify edges once', async () => {
  await Promise.all(Array.from({ length: 10 }, () => start({ payg: PAYG, free: { ...FREE, tunnel_limit: 5 } })));
  expect(await planRow('free')).toMatchObject({ tunnel_limit: 5 });
  expect(await heard.until(1)).toHaveLength(1);
});
