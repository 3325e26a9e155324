// Billing services over a separate database and an in-memory processor. For tests only.

import { loadServerConfig } from '@tunnel/config/server';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { AccountLocks } from '../../billing/account-locks.ts';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import { upsertPlans } from '../plans/plans.ts';
import type { UserActor } from '../shared/service-context.ts';
import { type BillingAccount, type BillingContext, findAccount } from './billing-account.ts';
import { ensureCustomer } from './customer.ts';
import { MemoryProcessor } from './memory-processor.fixture.ts';
import { subscribe } from './subscribe.ts';

export const NOON = Date.UTC(2030, 5, 15, 12);

export class BillingFixture {
  readonly clock = new FakeClock(NOON);
  readonly processor = new MemoryProcessor();
  readonly flushed: string[] = [];
  /** Extra action of a flush. */
  onFlush: () => Promise<void> = async () => {};
  readonly context: BillingContext;
  readonly database: TestDatabase;

  constructor(database: TestDatabase) {
    this.database = database;
    const { db } = database;
    const { clock, processor } = this;
    this.context = {
      db,
      clock,
      processor,
      logger: createLogger({ level: 'silent', format: 'json' }),
      settings: loadServerConfig({ env: {} }).platform,
      locks: new AccountLocks({ db, clock }),
      metering: {
        flush: async (userId) => {
          this.flushed.push(userId);
          await this.onFlush();
        },
      },
    };
  }

  async addUser(name: string, plan = 'free'): Promise<UserActor> {
    const { id } = await this.database.db
      .insertInto('users')
      .values({ email: `${name}@example.com`, plan, display_name: name, password_hash: null })
      .returning('id')
      .executeTakeFirstOrThrow();
    return { kind: 'user', userId: id };
  }

  /** Adds an account with a card at the processor. Returns the account and its customer ID. */
  async addPayer(name: string): Promise<{ readonly user: UserActor; readonly customerId: string }> {
    const user = await this.addUser(name);
    const customerId = await ensureCustomer(this.context, user.userId);
    this.processor.change(customerId, { paymentMethods: [`pm_${name}`], card: { brand: 'visa', last4: '4242' } });
    return { user, customerId };
  }

  async addSubscriber(name: string): Promise<{ readonly user: UserActor; readonly customerId: string }> {
    const payer = await this.addPayer(name);
    await subscribe(this.context, payer.user);
    return payer;
  }

  async accountOf({ userId }: UserActor): Promise<BillingAccount> {
    const account = await findAccount(this.database.db, userId);
    if (account === undefined) throw new Error('nothing is held of this account');
    return account;
  }

  async planOf({ userId }: UserActor): Promise<string> {
    const row = this.database.db.selectFrom('users').select('plan').where('id', '=', userId);
    return (await row.executeTakeFirstOrThrow()).plan;
  }

  /** Returns the kinds of changes announced to edges about the account. */
  async changesOf({ userId }: UserActor): Promise<string[]> {
    const rows = this.database.db.selectFrom('edge_changes').select('kind').where('account_id', '=', userId);
    return (await rows.orderBy('id').execute()).map(({ kind }) => kind);
  }

  async auditsOf({ userId }: UserActor): Promise<{ actor: string; action: string; details: unknown }[]> {
    const rows = this.database.db.selectFrom('audit_log').select(['actor', 'action', 'details']);
    return rows.where('user_id', '=', userId).orderBy('id').execute();
  }

  async mailsTo(name: string): Promise<string[]> {
    const rows = this.database.db.selectFrom('mail_outbox').select('subject');
    const found = await rows.where('recipient', '=', `${name}@example.com`).orderBy('created_at').execute();
    return found.map(({ subject }) => subject);
  }

  async setPlan({ userId }: UserActor, plan: string): Promise<void> {
    await this.database.db.updateTable('users').set({ plan }).where('id', '=', userId).execute();
  }

  close(): Promise<void> {
    return this.database.close();
  }
}

export const openBillingFixture = async (): Promise<BillingFixture> => {
  const database = await createTestDatabase();
  await upsertPlans(database.db, loadServerConfig({ env: {} }).platform.plans);
  return new BillingFixture(database);
};
