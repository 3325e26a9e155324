// Stores the journal records of an edge: each record once and in order, even if the edge sends it several times.
import type { JournalRecord, RecordBatch, RecordBatchAnswer, WantedNameEndpoint } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import { billingMonth } from '../../billing/rules/rating.rules.ts';
import type { Schema } from '../../db/schema.ts';
import type { NameSettings, NamesContext } from '../names/name-rows.ts';
import { announceChanges } from '../shared/edge-changes.ts';
import type { EdgeActor, ServiceContext } from '../shared/service-context.ts';
import { applyRecords, type UsedBytes } from './entry-changes.ts';
import { checkLimits, endedNameUses, insertOpened, lockEntries, writeEntries, writeSums } from './log-entries.ts';
import { lockNamesOf, nameEntries } from './name-entries.ts';

/**
 * How long after the end of a month its usage can be reported and is still billed in that month. Shorter than the time for which the
 * payment processor keeps a month open.
 */
export const MONTH_LATE_MS = 50 * 60_000;

type Trx = Transaction<Schema>;

/** Position of the journal after the batch, and an error if the batch leaves a gap. */
export interface StoredRecords extends RecordBatchAnswer {
  readonly refused: Fault | null;
}

export const storeRecords = async (
  { db, clock, logger, names }: NamesContext & Pick<ServiceContext, 'logger'>,
  { edgeId }: EdgeActor,
  batch: RecordBatch,
): Promise<StoredRecords> => {
  const { journal_id, first } = batch;
  const stored = await db.transaction().execute(async (trx) => {
    const last = await lockJournal(trx, edgeId, journal_id, new Date(clock.now()));
    const next = last + 1;
    if (first > next) {
      return { last_record: last, ignored: 0, refused: new Fault('EDGE_RECORDS_GAP', { first, next }) };
    }
    const unseen = batch.records.slice(next - first);
    if (unseen.length === 0) return { last_record: last, ignored: 0, refused: null };
    const ignored = await store(trx, edgeId, withoutNul(unseen), { now: clock.now(), settings: names });
    const last_record = last + unseen.length;
    await trx
      .updateTable('edge_journals')
      .set({ last_record })
      .where('edge_id', '=', edgeId)
      .where('journal_id', '=', journal_id)
      .execute();
    return { last_record, ignored, refused: null };
  });
  const { ignored, ...answer } = stored;
  if (ignored > 0) {
    logger.warn({ edge_id: edgeId, records: ignored }, 'received records of unknown tunnels');
  }
  return answer;
};

/** Locks a journal, so that its batches are stored one after the other. Returns the number of the last stored record. */
const lockJournal = async (trx: Trx, edgeId: string, journalId: string, now: Date): Promise<number> => {
  const { last_record } = await trx
    .insertInto('edge_journals')
    .values({ edge_id: edgeId, journal_id: journalId, updated_at: now })
    .onConflict((conflict) => conflict.columns(['edge_id', 'journal_id']).doUpdateSet({ updated_at: now }))
    .returning('last_record')
    .executeTakeFirstOrThrow();
  return last_record;
};

/** Stores the new records of a journal and returns the number of ignored records. */
const store = async (
  trx: Trx,
  edgeId: string,
  records: readonly JournalRecord[],
  { now, settings }: { readonly now: number; readonly settings: NameSettings },
): Promise<number> => {
  const fresh = await insertOpened(trx, edgeId, records);
  const tunnelIds = [...new Set(records.map((record) => record.tunnel_id))];
  const entries = await lockEntries(trx, edgeId, tunnelIds, fresh);
  const notOpen = [...entries.values()].filter(
    ({ fresh: isFresh, unregisteredAt }) => isFresh || unregisteredAt !== null,
  );
  const changes = applyRecords(entries, records, await currentRun(trx, edgeId));
  const uses = endedNameUses(changes, now);
  await lockNamesOf(trx, { entries, records }, uses);
  await writeEntries(trx, changes, uses);
  const news = await nameEntries(trx, { entries, records, now, settings });
  await writeSums(trx, changes);
  const unasked = notOpen.filter(({ unregisteredAt, abandoned }) => unregisteredAt === null && !abandoned);
  await checkLimits(
    trx,
    unasked.map(({ userId }) => userId),
    new Date(now),
  );
  await addMetered(trx, changes.used, now);
  await announceChanges(trx, news);
  return changes.ignored;
};

const currentRun = async (trx: Trx, edgeId: string): Promise<string | null> => {
  const { rows } = await sql<{ run_id: string | null }>`select run_id from edges where id = ${edgeId}`.execute(trx);
  return rows[0]?.run_id ?? null;
};

/**
 * Adds a batch's usage since the start of the subscription to the metered usage of paying accounts, by month. Runs in the transaction of
 * the daily sums and after them, because both must be locked in the same order everywhere. The time of a record decides whether the
 * record counts, so usage from before the subscription is never billed, however late it is reported.
 */
const addMetered = async (trx: Transaction<Schema>, used: readonly UsedBytes[], now: number): Promise<void> => {
  if (used.length === 0) return;
  const column = <T>(of: (record: UsedBytes) => T): T[] => used.map(of);
  await sql`
    insert into metered_usage (user_id, month, bytes)
    select told.user_id, told.month, sum(told.bytes)::bigint
    from unnest(
      ${column((record) => record.userId)}::uuid[],
      ${column((record) => monthOfBill(record.at, now))}::text[],
      ${column((record) => record.at.toISOString())}::timestamptz[],
      ${column((record) => record.bytes)}::bigint[]
    ) as told (user_id, month, at, bytes)
    join billing_accounts on billing_accounts.user_id = told.user_id and told.at >= billing_accounts.metered_from
    join users on users.id = told.user_id
    join plans on plans.name = users.plan and plans.price_cents_per_gb > 0
    group by told.user_id, told.month
    order by told.user_id, told.month
    on conflict (user_id, month) do update set bytes = metered_usage.bytes + excluded.bytes
  `.execute(trx);
};

const monthOfBill = (at: Date, now: number): string => billingMonth(at.getTime(), now, MONTH_LATE_MS);

const cleanEndpoint = (endpoint: WantedNameEndpoint): WantedNameEndpoint => ({
  ...endpoint,
  label: endpoint.label && clean(endpoint.label),
  group_key_hash: endpoint.group_key_hash && clean(endpoint.group_key_hash),
});

const clean = (text: string): string => text.replaceAll('\0', '');

/**
 * Removes NUL characters from the texts of records, because PostgreSQL cannot store them, and a single invalid name must not block a
 * journal forever.
 */
const withoutNul = (records: readonly JournalRecord[]): JournalRecord[] =>
  records.map((record) => {
    const tunnel_id = clean(record.tunnel_id);
    if (record.kind !== 'opened') return { ...record, tunnel_id };
    return {
      ...record,
      tunnel_id,
      run_id: clean(record.run_id),
      session_id: clean(record.session_id),
      name: clean(record.name),
      label: clean(record.label),
      client_name: record.client_name && clean(record.client_name),
      endpoint: record.endpoint && cleanEndpoint(record.endpoint),
      domain: record.domain && clean(record.domain),
      public_url: record.public_url && clean(record.public_url),
    };
  });
