// Applies a batch of journal records to entries of the tunnel log. A pure calculation on the entries read before.
import type { JournalRecord } from '@tunnel/contract';
import { endpointOfOpened } from '../names/name-key.ts';

export interface LogEntry {
  readonly id: string;
  readonly tunnelId: string;
  readonly userId: string;
  readonly keyId: string | null;
  readonly registeredAt: Date;
  readonly regionId: string | null;
  /** Id of the name served by the tunnel. Null if the tunnel serves no owned name, or if the name is not known yet. */
  readonly nameId: string | null;
  /** True if the same batch inserted the entry, so that the tunnel is not counted yet. */
  readonly fresh: boolean;
  runId: string;
  sessionId: string;
  name: string;
  label: string;
  /** Endpoint of the tunnel as a text. Null if the tunnel has no endpoint, or if the endpoint is not known yet. */
  endpoint: string | null;
  /** Name of the client. Null if an edge or a client of an earlier version did not report a name. */
  clientName: string | null;
  publicUrl: string | null;
  unregisteredAt: Date | null;
  presumedClosed: boolean;
  /** Number of requests added by the batch. */
  requests: number;
  bytes: number;
  /** True if the tunnel never got a slot. Its entry is deleted from the log. */
  abandoned: boolean;
}

export interface DaySum {
  readonly userId: string;
  readonly day: string;
  tunnels: number;
  requests: number;
  bytes: number;
}

/** Bytes used according to a single record. */
export interface UsedBytes {
  readonly userId: string;
  readonly at: Date;
  readonly bytes: number;
}

export interface EntryChanges {
  readonly changed: readonly LogEntry[];
  readonly abandoned: readonly LogEntry[];
  /** Number of tunnels to add to the count of every key; negative for abandoned tunnels. */
  readonly keyCounts: ReadonlyMap<string, number>;
  readonly days: readonly DaySum[];
  readonly used: readonly UsedBytes[];
  /** Number of records for tunnels that are not in the log or belong to another edge. */
  readonly ignored: number;
}

type Opened = Extract<JournalRecord, { kind: 'opened' }>;
type Closed = Extract<JournalRecord, { kind: 'closed' }>;

/**
 * Applies records to the entries of an edge, which are modified. `entries` is keyed by tunnel id. `currentRun` is null if the edge never
 * sent a heartbeat.
 */
export const applyRecords = (
  entries: ReadonlyMap<string, LogEntry>,
  records: readonly JournalRecord[],
  currentRun: string | null,
): EntryChanges => {
  const sums = new Sums();
  const touched = new Set<LogEntry>();
  const used: UsedBytes[] = [];
  let ignored = 0;
  for (const record of records) {
    const entry = entries.get(record.tunnel_id);
    if (entry === undefined || (record.kind === 'opened' && record.account_id !== entry.userId)) {
      ignored += 1;
      continue;
    }
    touched.add(entry);
    if (record.kind === 'opened') applyOpened(entry, record, currentRun);
    else if (record.kind === 'closed') applyClosed(entry, record);
    else {
      const at = cappedDate(record.at);
      applyUsage(entry, at, record);
      sums.use(entry.userId, dayOf(at), record);
      if (record.bytes > 0) used.push({ userId: entry.userId, at, bytes: record.bytes });
    }
  }
  for (const entry of touched) sums.count(entry, Number(entry.fresh) - Number(entry.abandoned));
  const changed = [...touched].filter((entry) => !entry.abandoned);
  const abandoned = [...touched].filter((entry) => entry.abandoned);
  return { changed, abandoned, keyCounts: sums.keyCounts, days: sums.inOrder(), used, ignored };
};

const applyOpened = (entry: LogEntry, record: Opened, currentRun: string | null): void => {
  entry.abandoned = false;
  entry.label = record.label;
  entry.endpoint = endpointOfOpened(record, entry.regionId);
  entry.name = record.name;
  entry.clientName = record.client_name ?? null;
  entry.publicUrl = record.public_url ?? null;
  entry.sessionId = record.session_id;
  entry.runId = record.run_id;
  const at = cappedDate(record.at);
  if (currentRun !== null && record.run_id !== currentRun) {
    // The edge has restarted since the record. Only a later record can report when the tunnel ended.
    entry.presumedClosed ||= entry.unregisteredAt === null;
    entry.unregisteredAt ??= at;
  } else if (entry.unregisteredAt !== null && (entry.presumedClosed || at > entry.unregisteredAt)) {
    entry.unregisteredAt = null;
    entry.presumedClosed = false;
  }
};

const applyUsage = (entry: LogEntry, at: Date, used: { requests: number; bytes: number }): void => {
  entry.requests += used.requests;
  entry.bytes += used.bytes;
  // The tunnel carried traffic at this time, so it was open at least until then.
  if (entry.presumedClosed && entry.unregisteredAt !== null && at > entry.unregisteredAt) entry.unregisteredAt = at;
};

const applyClosed = (entry: LogEntry, record: Closed): void => {
  // A tunnel that once had a slot stays in the log, even if a second attempt was abandoned.
  if (record.abandoned && entry.label === '') {
    entry.abandoned = true;
    return;
  }
  const told = cappedDate(record.at);
  const at = told < entry.registeredAt ? entry.registeredAt : told;
  if (entry.unregisteredAt === null || entry.presumedClosed || at < entry.unregisteredAt) entry.unregisteredAt = at;
  entry.presumedClosed = false;
};

class Sums {
  readonly keyCounts = new Map<string, number>();
  readonly #days = new Map<string, DaySum>();

  use(userId: string, day: string, { requests, bytes }: { requests: number; bytes: number }): void {
    const sum = this.#day(userId, day);
    sum.requests += requests;
    sum.bytes += bytes;
  }

  /** Counts tunnels for the day and the key of the entry's registration. */
  count({ userId, keyId, registeredAt }: LogEntry, tunnels: number): void {
    if (tunnels === 0) return;
    this.#day(userId, dayOf(registeredAt)).tunnels += tunnels;
    if (keyId !== null) this.keyCounts.set(keyId, (this.keyCounts.get(keyId) ?? 0) + tunnels);
  }

  /** Returns the sums in the order in which every transaction locks the rows, to avoid deadlocks. */
  inOrder(): DaySum[] {
    return [...this.#days.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
  }

  #day(userId: string, day: string): DaySum {
    const key = `${userId} ${day}`;
    const known = this.#days.get(key);
    if (known !== undefined) return known;
    const sum: DaySum = { userId, day, tunnels: 0, requests: 0, bytes: 0 };
    this.#days.set(key, sum);
    return sum;
  }
}

/** End of the year 9999. Later dates have formats that not every program can parse. */
const LAST_MS = 253_402_300_799_999;

/** Converts an edge's time in milliseconds since the epoch to a date for the database, at most LAST_MS. */
export const cappedDate = (ms: number): Date => new Date(Math.min(ms, LAST_MS));

/** UTC day of a date, as YYYY-MM-DD. */
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);
