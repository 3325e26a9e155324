// Certificate store in PostgreSQL, shared by any number of platform processes. A lease in the row names the process that works on a
// certificate, and every write carries the epoch of the lease. Changes relevant to edges are announced in the same transaction.

import type {
  BudgetTaken,
  CertificateRecord,
  CertificateStore,
  ChallengeAnswer,
  ChallengeKey,
  Claim,
  ClaimRules,
  RecordChanges,
  StoredAccount,
} from '@tunnel/certificates/acme';
import {
  type BudgetEntry,
  type CertificateLife,
  certificateDueAt,
  NEW_CERTIFICATE,
  type OrderBudgetRules,
  takeFromBudget,
} from '@tunnel/certificates/life';
import { CERTIFICATES_LIMITS } from '@tunnel/certificates/limits';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isUuid, type Schema } from '../../db/schema.ts';
import { announceChange } from '../shared/edge-changes.ts';
import {
  certificateLife,
  certificateRecord,
  KEPT_COLUMNS,
  type KeptCertificate,
  type KeptRow,
  keptCertificate,
  visibleState,
} from './certificate-rows.ts';

export interface PostgresCertificateStoreOptions {
  readonly db: Db;
  /** Certificate authority, as in the setting `[acme] directory`. The rows of different authorities are separate. */
  readonly directory: string;
  /** Called in the transaction that saves a certificate, before the change is announced to edges. */
  readonly onSaved?: (trx: Transaction<Schema>, before: KeptCertificate, after: KeptCertificate) => Promise<void>;
}

export class PostgresCertificateStore implements CertificateStore {
  readonly #db: Db;
  readonly #directory: string;
  readonly #onSaved: PostgresCertificateStoreOptions['onSaved'];

  constructor({ db, directory, onSaved }: PostgresCertificateStoreOptions) {
    this.#db = db;
    this.#directory = directory;
    this.#onSaved = onSaved;
  }

  async want(names: readonly string[], userId: string | null = null): Promise<CertificateRecord> {
    const key = [...names].sort().join(' ');
    const has_wildcard = names.some((name) => name.startsWith('*.'));
    const due_at = dueAt(NEW_CERTIFICATE);
    await this.#db
      .insertInto('certificates')
      .values({
        directory: this.#directory,
        names: key,
        has_wildcard,
        user_id: userId,
        due_at,
        life: JSON.stringify(NEW_CERTIFICATE),
      })
      .onConflict((conflict) => conflict.columns(['directory', 'names']).doNothing())
      .execute();
    const row = await this.#rows().where('names', '=', key).executeTakeFirstOrThrow();
    return certificateRecord(row);
  }

  /** Deletes a certificate completely, including its private key. */
  async forget(id: string): Promise<void> {
    if (!isUuid(id)) return;
    await this.#db.transaction().execute(async (trx) => {
      const { numDeletedRows } = await trx
        .deleteFrom('certificates')
        .where('id', '=', id)
        .where('directory', '=', this.#directory)
        .executeTakeFirst();
      if (numDeletedRows > 0n) await announceChange(trx, { kind: 'certificate-changed', certificateId: id });
    });
  }

  async list(): Promise<readonly CertificateRecord[]> {
    return (await this.#rows().orderBy('created_at').execute()).map(certificateRecord);
  }

  async get(id: string): Promise<CertificateRecord | null> {
    const found = await this.kept(id);
    if (found === null) return null;
    const { isSuspended: _isSuspended, ...record } = found;
    return record;
  }

  async kept(id: string): Promise<KeptCertificate | null> {
    if (!isUuid(id)) return null;
    const row = await this.#rows().where('id', '=', id).executeTakeFirst();
    return row === undefined ? null : keptCertificate(row);
  }

  /** Returns a page of certificates, ordered by id. If `after` is null, the first page. */
  async page(after: string | null, limit: number): Promise<readonly KeptCertificate[]> {
    const rows = this.#rows().orderBy('id').limit(limit);
    return (await (after === null ? rows : rows.where('id', '>', after)).execute()).map(keptCertificate);
  }

  async claim(owner: string, now: number, leaseMs: number, takes?: ClaimRules): Promise<Claim | null> {
    const busyOf = sql`(select count(*) from unnest(${[...(takes?.busyAccounts ?? [])]}::uuid[]) busy where busy = user_id)`;
    const { rows } = await sql<KeptRow & { readonly epoch: number }>`
      update certificates set locked_by = ${owner}, locked_until = ${new Date(now + leaseMs)}, epoch = epoch + 1
      where id = (
        select id from certificates
        where directory = ${this.#directory} and not suspended and due_at <= ${new Date(now)}
          and (locked_until is null or locked_until <= ${new Date(now)})
          and (${takes?.wildcards !== false} or not has_wildcard)
          and ${busyOf} < ${CERTIFICATES_LIMITS.CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT}
        order by ${busyOf}, due_at limit 1
        for update skip locked
      )
      returning id, names, life, order_key, certificate, user_id, suspended, epoch
    `.execute(this.#db);
    const [row] = rows;
    return row === undefined ? null : { record: certificateRecord(row), epoch: row.epoch };
  }

  async extend({ record, epoch }: Claim, now: number, leaseMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('certificates')
      .set({ locked_until: new Date(now + leaseMs) })
      .where('id', '=', record.id)
      .where('epoch', '=', epoch)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  save({ record, epoch }: Claim, changes: RecordChanges): Promise<boolean> {
    return this.#change(record.id, (row) => (row.epoch === epoch ? changes : null));
  }

  async release({ record, epoch }: Claim): Promise<void> {
    await this.#db
      .updateTable('certificates')
      .set({ locked_by: null, locked_until: null })
      .where('id', '=', record.id)
      .where('epoch', '=', epoch)
      .execute();
  }

  async change(id: string, now: number, change: (life: CertificateLife) => CertificateLife): Promise<boolean> {
    if (!isUuid(id)) return false;
    return this.#change(id, (row) => {
      const isLeased = row.locked_until !== null && row.locked_until.getTime() > now;
      return isLeased ? null : { life: change(certificateLife(row)) };
    });
  }

  /** Sets the account of a certificate, and whether the certificate is suspended from renewal. */
  async setKeeping(id: string, keeping: Pick<KeptCertificate, 'accountId' | 'isSuspended'>): Promise<void> {
    await this.#db
      .updateTable('certificates')
      .set({ user_id: keeping.accountId, suspended: keeping.isSuspended })
      .where('id', '=', id)
      .execute();
  }

  async wantInfo(now: number, everyMs: number): Promise<void> {
    await sql`
      update certificates row
      set life = jsonb_set(row.life, '{infoAt}', to_jsonb(wanted.at)),
        due_at = least(row.due_at, to_timestamp(wanted.at / 1000.0))
      from (
        select id, ${now}::bigint + ${everyMs}::bigint * (row_number() over (order by due_at, id) - 1) as at
        from certificates
        where directory = ${this.#directory} and jsonb_typeof(life -> 'issued') = 'object'
          and (locked_until is null or locked_until <= ${new Date(now)})
      ) wanted
      where row.id = wanted.id and (row.life ->> 'infoAt')::numeric > wanted.at
        and (row.locked_until is null or row.locked_until <= ${new Date(now)})
    `.execute(this.#db);
  }

  async account(): Promise<StoredAccount | null> {
    const row = await this.#db
      .selectFrom('acme_accounts')
      .select(['key', 'url', 'email'])
      .where('directory', '=', this.#directory)
      .executeTakeFirst();
    return row ?? null;
  }

  async saveAccount(account: StoredAccount, insteadOf: string | null): Promise<StoredAccount> {
    const { key, url, email } = account;
    await this.#db
      .insertInto('acme_accounts')
      .values({ directory: this.#directory, key, url, email })
      .onConflict((conflict) =>
        conflict
          .column('directory')
          .doUpdateSet({ key, url, email })
          .where('acme_accounts.key', '=', insteadOf ?? ''),
      )
      .execute();
    return (await this.account()) ?? account;
  }

  async takeFromBudget(
    name: string,
    rules: OrderBudgetRules,
    now: number,
    account: string | null,
  ): Promise<BudgetTaken> {
    const directory = this.#directory;
    // Orders of the operator do not use up the accounts' budgets.
    if (account === null) return { kind: 'taken' };
    return this.#db.transaction().execute(async (trx) => {
      await trx
        .insertInto('acme_budgets')
        .values({ directory, name })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
      const { taken_at } = await trx
        .selectFrom('acme_budgets')
        .select('taken_at')
        .where('directory', '=', directory)
        .where('name', '=', name)
        .forUpdate()
        .executeTakeFirstOrThrow();
      const answer = takeFromBudget(taken_at as readonly BudgetEntry[], rules, now, account);
      if (answer.kind === 'empty') return answer;
      await trx
        .updateTable('acme_budgets')
        .set({ taken_at: JSON.stringify(answer.entries) })
        .where('directory', '=', directory)
        .where('name', '=', name)
        .execute();
      return { kind: 'taken' };
    });
  }

  async setChallenge(answer: ChallengeAnswer, until: number): Promise<void> {
    const { type, name, token, keyAuthorization: key_authorization } = answer;
    const told = { type, name, token, key_authorization, expires_at: new Date(until) };
    await this.#db
      .insertInto('acme_challenges')
      .values({ directory: this.#directory, asked_by: askedBy(answer), ...told })
      .onConflict((conflict) => conflict.columns(['directory', 'asked_by']).doUpdateSet(told))
      .execute();
  }

  async clearChallenge(answer: ChallengeAnswer): Promise<void> {
    await this.#db
      .deleteFrom('acme_challenges')
      .where('directory', '=', this.#directory)
      .where('asked_by', '=', askedBy(answer))
      // A later order may have replaced the challenge, so the token must match.
      .where('token', '=', answer.token)
      .execute();
  }

  async findChallenge(key: ChallengeKey, now: number): Promise<ChallengeAnswer | null> {
    const waitedFor = this.#db
      .selectFrom('acme_challenges')
      .select(['type', 'name', 'token', 'key_authorization'])
      .where('directory', '=', this.#directory)
      .where('expires_at', '>', new Date(now));
    const found =
      'name' in key
        ? waitedFor.where('name', '=', key.name).orderBy('expires_at', 'desc')
        : waitedFor.where('asked_by', '=', 'token' in key ? `token ${key.token}` : `tls ${key.tlsName}`);
    const row = await found.limit(1).executeTakeFirst();
    if (row === undefined) return null;
    const { type, name, token, key_authorization: keyAuthorization } = row;
    return { type: type as ChallengeAnswer['type'], name, token, keyAuthorization };
  }

  #rows() {
    return this.#db.selectFrom('certificates').select(KEPT_COLUMNS).where('directory', '=', this.#directory);
  }

  /**
   * Locks a certificate and saves the changes returned by `decide`. Saves nothing and returns false if `decide` returns null or the
   * certificate does not exist.
   */
  #change(id: string, decide: (row: LockedRow) => RecordChanges | null): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom('certificates')
        .select([...KEPT_COLUMNS, 'epoch', 'locked_until'])
        .where('id', '=', id)
        .where('directory', '=', this.#directory)
        .forUpdate()
        .executeTakeFirst();
      const changes = row === undefined ? null : decide(row);
      if (row === undefined || changes === null) return false;
      const before = keptCertificate(row);
      const after = { ...before, ...changes };
      await trx
        .updateTable('certificates')
        .set({
          life: JSON.stringify(after.life),
          due_at: dueAt(after.life),
          order_key: after.orderKey,
          certificate: after.certificate === null ? null : JSON.stringify(after.certificate),
        })
        .where('id', '=', id)
        .execute();
      await this.#onSaved?.(trx, before, after);
      const isShown = changes.certificate !== undefined || visibleState(before.life) !== visibleState(after.life);
      if (isShown) await announceChange(trx, { kind: 'certificate-changed', certificateId: id });
      return true;
    });
  }
}

interface LockedRow extends KeptRow {
  readonly epoch: number;
  readonly locked_until: Date | null;
}

const dueAt = (life: CertificateLife): Date => new Date(certificateDueAt(life));

const askedBy = ({ type, token, name }: ChallengeAnswer): string =>
  type === 'tls-alpn-01' ? `tls ${name}` : `token ${token}`;
