// SQL statements for entries of the tunnel log: for batches of records, and for edges that can no longer report the end of their tunnels.
import type { JournalRecord } from '@tunnel/contract';
import { sql, type Transaction } from 'kysely';
import { isUuid, type Schema } from '../../db/schema.ts';
import { type NameUse, noteLastUse } from '../names/name-rows.ts';
import { cappedDate, type DaySum, type EntryChanges, type LogEntry } from './entry-changes.ts';

type Trx = Transaction<Schema>;
type Opened = Extract<JournalRecord, { kind: 'opened' }>;

/**
 * Inserts log entries for tunnels that the log does not have yet, because they were opened while the platform was down. A batch of a
 * thousand records needs only a few statements, and rows are locked in the order of their keys. Returns the ids of the inserted tunnels.
 */
export const insertOpened = async (
  trx: Trx,
  edgeId: string,
  records: readonly JournalRecord[],
): Promise<ReadonlySet<string>> => {
  const opened = firstOfEach(records);
  if (opened.length === 0) return new Set();
  const column = <T>(of: (record: Opened) => T): T[] => opened.map(of);
  // A deleted key, or the key of another account, must not prevent the entry of the tunnel.
  const { rows } = await sql<{ tunnel_id: string }>`
    insert into tunnel_log
      (user_id, key_id, edge_id, region_id, tunnel_id, run_id, session_id, name, client_name, protocol, registered_at)
    select users.id, api_keys.id, edges.id, edges.region_id, told.tunnel_id, told.run_id, told.session_id, told.name,
      told.client_name, told.protocol, told.at
    from unnest(
      ${column((record) => record.account_id)}::uuid[],
      ${column(({ key_id }) => (isUuid(key_id) ? key_id : null))}::uuid[],
      ${column((record) => record.tunnel_id)}::text[],
      ${column((record) => record.run_id)}::text[],
      ${column((record) => record.session_id)}::text[],
      ${column((record) => record.name)}::text[],
      ${column((record) => record.client_name ?? null)}::text[],
      ${column((record) => record.protocol)}::text[],
      ${column((record) => cappedDate(record.at).toISOString())}::timestamptz[]
    ) as told (account_id, key_id, tunnel_id, run_id, session_id, name, client_name, protocol, at)
    join users on users.id = told.account_id and users.deleted_at is null
    join edges on edges.id = ${edgeId}
    left join api_keys on api_keys.id = told.key_id and api_keys.user_id = users.id
    order by told.tunnel_id
    on conflict (tunnel_id) do nothing
    returning tunnel_id
  `.execute(trx);
  return new Set(rows.map((row) => row.tunnel_id));
};

const firstOfEach = (records: readonly JournalRecord[]): Opened[] => {
  const first = new Map<string, Opened>();
  for (const record of records) {
    if (record.kind === 'opened' && isUuid(record.account_id) && !first.has(record.tunnel_id)) {
      first.set(record.tunnel_id, record);
    }
  }
  return [...first.values()];
};

/** Locks the given entries of an edge and returns the entries by tunnel id. */
export const lockEntries = async (
  trx: Trx,
  edgeId: string,
  tunnelIds: readonly string[],
  fresh: ReadonlySet<string>,
): Promise<Map<string, LogEntry>> => {
  const rows = await trx
    .selectFrom('tunnel_log')
    .select(['id', 'tunnel_id', 'user_id', 'key_id', 'registered_at', 'run_id', 'session_id', 'name', 'label'])
    .select(['client_name', 'public_url', 'unregistered_at', 'presumed_closed', 'region_id', 'name_id', 'endpoint'])
    .where(sql<boolean>`tunnel_id = any(${tunnelIds}::text[])`)
    .where('edge_id', '=', edgeId)
    .orderBy('tunnel_id')
    .forNoKeyUpdate()
    .execute();
  const entryOf = (row: (typeof rows)[number]): LogEntry => ({
    id: row.id,
    tunnelId: row.tunnel_id,
    userId: row.user_id,
    keyId: row.key_id,
    registeredAt: row.registered_at,
    regionId: row.region_id,
    nameId: row.name_id,
    fresh: fresh.has(row.tunnel_id),
    runId: row.run_id,
    sessionId: row.session_id,
    name: row.name,
    label: row.label,
    endpoint: row.endpoint,
    clientName: row.client_name,
    publicUrl: row.public_url,
    unregisteredAt: row.unregistered_at,
    presumedClosed: row.presumed_closed,
    requests: 0,
    bytes: 0,
    abandoned: false,
  });
  return new Map(rows.map((row) => [row.tunnel_id, entryOf(row)]));
};

export const writeEntries = async (trx: Trx, changes: EntryChanges, uses: readonly NameUse[]): Promise<void> => {
  if (changes.changed.length > 0) await updateEntries(trx, changes.changed);
  if (changes.abandoned.length > 0) {
    const ids = changes.abandoned.map((entry) => entry.id);
    await sql`delete from tunnel_log where id = any(${ids}::uuid[])`.execute(trx);
  }
  await noteLastUse(trx, uses);
};

/**
 * Returns the last uses of the names of ended tunnels. The time comes from the platform's clock: if the clock of an edge is months
 * behind, its times would free the names at once; if the clock is ahead, its times would block the names for too long.
 */
export const endedNameUses = ({ changed }: EntryChanges, now: number): NameUse[] =>
  changed.flatMap(({ nameId, unregisteredAt }) =>
    nameId === null || unregisteredAt === null ? [] : [{ nameId, at: new Date(now) }],
  );

/** Writes the sums of a batch. Keys are locked before days, in the same order as when a tunnel is opened. */
export const writeSums = async (trx: Trx, changes: EntryChanges): Promise<void> => {
  if (changes.keyCounts.size > 0) await addToKeys(trx, changes.keyCounts);
  if (changes.days.length > 0) await addToDays(trx, changes.days);
};

const updateEntries = async (trx: Trx, entries: readonly LogEntry[]): Promise<void> => {
  const column = <T>(of: (entry: LogEntry) => T): T[] => entries.map(of);
  await sql`
    update tunnel_log set
      run_id = told.run_id, session_id = told.session_id, name = told.name, label = told.label,
      endpoint = told.endpoint,
      client_name = told.client_name, public_url = told.public_url,
      unregistered_at = told.unregistered_at, presumed_closed = told.presumed_closed,
      request_count = request_count + told.requests, bytes_proxied = bytes_proxied + told.bytes
    from unnest(
      ${column((entry) => entry.id)}::uuid[],
      ${column((entry) => entry.runId)}::text[],
      ${column((entry) => entry.sessionId)}::text[],
      ${column((entry) => entry.name)}::text[],
      ${column((entry) => entry.label)}::text[],
      ${column((entry) => entry.endpoint)}::text[],
      ${column((entry) => entry.clientName)}::text[],
      ${column((entry) => entry.publicUrl)}::text[],
      ${column((entry) => entry.unregisteredAt?.toISOString() ?? null)}::timestamptz[],
      ${column((entry) => entry.presumedClosed)}::boolean[],
      ${column((entry) => entry.requests)}::bigint[],
      ${column((entry) => entry.bytes)}::bigint[]
    ) as told
      (id, run_id, session_id, name, label, endpoint, client_name, public_url, unregistered_at, presumed_closed, requests, bytes)
    where tunnel_log.id = told.id
  `.execute(trx);
};

const addToKeys = async (trx: Trx, counts: ReadonlyMap<string, number>): Promise<void> => {
  await sql`
    with counted as (
      select api_keys.id, told.tunnels from api_keys
      join unnest(${[...counts.keys()]}::uuid[], ${[...counts.values()]}::bigint[]) as told (id, tunnels)
        on told.id = api_keys.id
      order by api_keys.id for no key update of api_keys
    )
    update api_keys set tunnel_count = greatest(0, tunnel_count + counted.tunnels)
    from counted where api_keys.id = counted.id
  `.execute(trx);
};

const addToDays = async (trx: Trx, days: readonly DaySum[]): Promise<void> => {
  const column = <T>(of: (sum: DaySum) => T): T[] => days.map(of);
  await sql`
    insert into usage_daily (user_id, day, tunnels, requests, bytes)
    select * from unnest(
      ${column((sum) => sum.userId)}::uuid[],
      ${column((sum) => sum.day)}::date[],
      ${column((sum) => sum.tunnels)}::bigint[],
      ${column((sum) => sum.requests)}::bigint[],
      ${column((sum) => sum.bytes)}::bigint[]
    ) as told (user_id, day, tunnels, requests, bytes)
    order by told.user_id, told.day
    on conflict (user_id, day) do update set
      tunnels = greatest(0, usage_daily.tunnels + excluded.tunnels),
      requests = usage_daily.requests + excluded.requests,
      bytes = usage_daily.bytes + excluded.bytes
  `.execute(trx);
};

export interface LostEntries {
  readonly edgeId: string;
  /** Time of the edge's last heartbeat. An entry opened later gets its opening time as its end. */
  readonly at: Date;
  /** If set, only entries of runs other than this run are closed. */
  readonly notOfRun?: string;
}

/**
 * Closes the open log entries of an edge that can no longer report the end of its tunnels, with the edge's last heartbeat as the end. The
 * entries are reopened if the edge turns out to be running. Rows are locked in the order of tunnel ids, as everywhere else, to avoid
 * deadlocks. Returns the number of closed entries.
 */
export const closeEntries = async (
  trx: Transaction<Schema>,
  { edgeId, at, notOfRun }: LostEntries,
): Promise<number> => {
  const ofRuns = notOfRun === undefined ? sql`true` : sql`run_id <> ${notOfRun}`;
  const { rows } = await sql<{ name_id: string | null; unregistered_at: Date }>`
    with lost as (
      select id from tunnel_log
      where edge_id = ${edgeId} and unregistered_at is null and ${ofRuns}
      order by tunnel_id for no key update
    )
    update tunnel_log set unregistered_at = greatest(registered_at, ${at}::timestamptz), presumed_closed = true
    from lost where tunnel_log.id = lost.id
    returning name_id, unregistered_at
  `.execute(trx);
  await noteLastUse(
    trx,
    rows.flatMap(({ name_id: nameId, unregistered_at }) => (nameId === null ? [] : [{ nameId, at: unregistered_at }])),
  );
  return rows.length;
};

/** Reopens entries that were closed too early, because a heartbeat of their run has arrived. Returns the number of reopened entries. */
export const openAgain = async (
  trx: Transaction<Schema>,
  { edgeId, runId, now }: { readonly edgeId: string; readonly runId: string; readonly now: Date },
): Promise<number> => {
  const { rows } = await sql<{ user_id: string }>`
    with living as (
      select id from tunnel_log
      where edge_id = ${edgeId} and run_id = ${runId} and presumed_closed
      order by tunnel_id for no key update
    )
    update tunnel_log set unregistered_at = null, presumed_closed = false
    from living where tunnel_log.id = living.id
    returning tunnel_log.user_id
  `.execute(trx);
  const accountIds = rows.map((row) => row.user_id);
  await checkLimits(trx, accountIds, now);
  return rows.length;
};

/**
 * Schedules a limit check by a job, for accounts with tunnels that were opened without asking the platform: tunnels of an edge that was
 * presumed dead or could not reach the platform. The plan of such an account may allow less by now.
 */
export const checkLimits = async (
  trx: Transaction<Schema>,
  accountIds: readonly string[],
  now: Date,
): Promise<void> => {
  if (accountIds.length === 0) return;
  await sql`
    with unchecked as (
      select user_id from billing_accounts
      where user_id = any(${accountIds}::uuid[]) and limit_check_at is null
      order by user_id for no key update
    )
    update billing_accounts set limit_check_at = ${now}
    from unchecked where billing_accounts.user_id = unchecked.user_id
  `.execute(trx);
};
