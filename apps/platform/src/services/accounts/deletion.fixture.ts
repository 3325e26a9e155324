// Accounts with every kind of data, marked so that a database dump shows the remains of each account. For tests only.

import { loadServerConfig } from '@tunnel/config/server';
import type { JournalRecord } from '@tunnel/contract';
import { randomId, Secret } from '@tunnel/runtime';
import { sql } from 'kysely';
import { MasterKey } from '../../db/master-key.ts';
import { createTestDatabase } from '../../db/test-database.fixture.ts';
import { BillingFixture } from '../billing/billing.fixture.ts';
import {
  type Account,
  addEdge,
  addKey,
  type Edge,
  type LinkFixture,
  openedOf,
  questionOf,
} from '../edges/link.fixture.ts';
import { upsertPlans } from '../plans/plans.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { storeRecords } from '../tunnels/store-records.ts';

const MASTER_KEY = new MasterKey('master-key', new Secret('m'.repeat(43)));

export interface Owner extends Account {
  /** Texts that must not appear in a dump once the account is deleted. */
  readonly personal: readonly string[];
  /** Name of the account's tunnels. */
  readonly tunnelName: string;
}

export class DeletionFixture extends BillingFixture {
  #edge: Edge | undefined;
  readonly #journal = randomId('jrn');
  #records = 0;
  #owners = 0;

  get link(): LinkFixture {
    const { db } = this.database;
    const { clock, context } = this;
    return {
      database: this.database,
      db,
      clock,
      logger: context.logger,
      masterKey: () => MASTER_KEY,
      names: { hold_days: 30, assigned_hold_hours: 24, grace_days: 7 },
      accountShare: 0.25,
      settings: context.settings,
      close: () => this.close(),
    };
  }

  async edge(): Promise<Edge> {
    this.#edge ??= await addEdge(this.link);
    return this.#edge;
  }

  /** Adds an account with sessions, mails, keys, a stored response, and usage to report. */
  async addOwner({ subscribed = true }: { readonly subscribed?: boolean } = {}): Promise<Owner> {
    const { db } = this.database;
    const mark = `${(this.#owners += 1)}-`;
    const email = `ann-${mark}now@x.test`;
    const before = `ann-${mark}before@x.test`;
    const next = `ann-${mark}next@x.test`;
    const personal = [email, before, next, `Ann${mark}`, `203.0.113.${mark}`, `Browser${mark}`, `laptop-${mark}`];
    const tunnelName = `shop-${mark}`;
    const user = subscribed ? (await this.addSubscriber(randomId('u'))).user : await this.addUser(randomId('u'));
    const own = { user_id: user.userId };
    await db
      .updateTable('users')
      .set({ email, display_name: `Ann${mark}` })
      .where('id', '=', user.userId)
      .execute();
    const now = new Date(this.clock.now());
    const address = `203.0.113.${mark}`;
    const { id: family_id } = await db
      .insertInto('refresh_families')
      .values({ ...own, user_agent: `Browser${mark}`, address, network: address })
      .returning('id')
      .executeTakeFirstOrThrow();
    await db
      .insertInto('refresh_tokens')
      .values({ token_hash: randomId('t'), family_id, expires_at: now })
      .execute();
    await this.#addMails(user.userId, { email, before, next });
    await db
      .insertInto('cap_notices')
      .values({ ...own, month: '2030-06', percent: 80 })
      .execute();
    const answer = { status: 200, body: JSON.stringify({ email }) };
    await db
      .insertInto('idempotency_keys')
      .values({ ...own, key: 'k', operation: 'o', request_hash: 'h', ...answer })
      .execute();
    const key = await addKey(db, user.userId);
    await db
      .updateTable('api_keys')
      .set({ label: `laptop-${mark}` })
      .where('id', '=', key.keyId)
      .execute();
    return { accountId: user.userId, email, ...key, personal, tunnelName };
  }

  /** Adds a waiting mail, a mail to a previous address, a pending address change, and an invitation. */
  async #addMails(userId: string, { email, before, next }: Record<'email' | 'before' | 'next', string>): Promise<void> {
    const { db } = this.database;
    const now = this.clock.now();
    const mail = { subject: 's', text_body: `to ${email}`, html_body: `to ${email}` };
    await db
      .insertInto('mail_outbox')
      .values([
        { ...mail, recipient: email },
        { ...mail, recipient: before, user_id: userId, sent_at: new Date(now) },
      ])
      .execute();
    await db
      .insertInto('mail_requests')
      .values([
        { email, kind: 'reset', at: new Date(now) },
        { email: next, kind: 'change', at: new Date(now), user_id: userId, epoch: 0 },
      ])
      .execute();
    const expires_at = new Date(now + 3_600_000);
    await db
      .insertInto('mail_tokens')
      .values({ token_hash: randomId('t'), user_id: userId, kind: 'change', new_email: next, expires_at })
      .execute();
    await db
      .insertInto('invites')
      .values({ token_hash: randomId('t'), email, expires_at })
      .execute();
  }

  /** Opens a tunnel as an edge does: asks first, and reports the tunnel a moment later. Returns the tunnel's ID. */
  async openTunnel(owner: Owner): Promise<string> {
    const edge = await this.edge();
    const question = questionOf(edge, owner, { name: owner.tunnelName });
    await openTunnel(this.link, edge.actor, question);
    const opened = openedOf(edge, owner, question.tunnel_id);
    const told = { name: owner.tunnelName, label: owner.tunnelName, client_name: owner.tunnelName };
    await this.tell({ ...opened, ...told, public_url: `https://${owner.tunnelName}.x.test` } as JournalRecord);
    return question.tunnel_id;
  }

  async tell(...records: JournalRecord[]): Promise<void> {
    const { actor, runId } = await this.edge();
    const first = this.#records + 1;
    this.#records += records.length;
    await storeRecords(this.link, actor, { run_id: runId, journal_id: this.#journal, first, records });
  }

  /** Returns every table of the database as text. */
  async dump(): Promise<string> {
    const { db } = this.database;
    const { rows } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = 'public' order by 1
    `.execute(db);
    const parts: string[] = [];
    for (const { name } of rows) {
      const { rows: lines } = await sql<{ line: string }>`select t::text as line from ${sql.table(name)} t`.execute(db);
      parts.push(name, ...lines.map(({ line }) => line));
    }
    return parts.join('\n');
  }

  async leftOf({ personal, tunnelName }: Owner): Promise<string[]> {
    const text = await this.dump();
    return [...personal, tunnelName].filter((mark) => text.includes(mark));
  }
}

export const openDeletionFixture = async (): Promise<DeletionFixture> => {
  const database = await createTestDatabase();
  await upsertPlans(database.db, loadServerConfig({ env: {} }).platform.plans);
  return new DeletionFixture(database);
};
