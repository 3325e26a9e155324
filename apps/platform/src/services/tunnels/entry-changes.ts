// What a batch of records makes of the entries of the log: a plain calculation over the entries as they were found.
import type { JournalRecord } from '@tunnel/contract';
import { endpointOfOpened } from '../names/name-key.ts';

export interface LogEntry {
  readonly id: string;
  readonly tunnelId: string;
  readonly userId: string;
  readonly keyId: string | null;
  readonly registeredAt: Date;
  readonly regionId: string | null;
  /** The name that it serves; null: none that is anybody's, or none that is known yet. */
  readonly nameId: string | null;
  /** It was put into the log by this very batch, and is not counted yet. */
  readonly fresh: boolean;
  runId: string;
  sessionId: string;
  name: string;
  label: string;
  /** What it is at, as a text; null: nothing, or not known yet. */
  endpoint: string | null;
  /** null: not told, by an edge or a client of before. */
  clientName: string | null;
  publicUrl: string | null;
  unregisteredAt: Date | null;
  presumedClosed: boolean;
  /** Added by this batch. */
  requests: number;
  bytes: number;
  /** It never had a place, and leaves the log. */
  abandoned: boolean;
}

export interface DaySum {
  readonly userId: string;
  readonly day: string;
  tunnels: number;
  requests: number;
  bytes: number;
}

/** Of one record. */
export interface UsedBytes {
  readonly userId: string;
  readonly at: Date;
  readonly bytes: number;
}

export interface EntryChanges {
  readonly changed: readonly LogEntry[];
  readonly abandoned: readonly LogEntry[];
  /** Tunnels to add to each key's count; may be negative. */
  readonly keyCounts: ReadonlyMap<string, number>;
  readonly days: readonly DaySum[];
  readonly used: readonly UsedBytes[];
  /** Records of tunnels that are not in the log, or not this edge's. */
  readonly ignored: number;
}

type Opened = Extract<JournalRecord, { kind: 'opened' }>;
type Closed = Extract<JournalRecord, { kind: 'closed' }>;

/** `entries`: those of this edge, by tunnel id; they are changed. `currentRun`: null when the edge was never heard. */
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
    // Its run is over: only a later record can tell when it ended.
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
  // It carried something then, so it lived at least until then.
  if (entry.presumedClosed && entry.unregisteredAt !== null && at > entry.unregisteredAt) entry.unregisteredAt = at;
};

const applyClosed = (entry: LogEntry, record: Closed): void => {
  // One that once had its place is part of the history, whatever became of a second try.
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

  /** On the day and the key that it was registered with. */
  count({ userId, keyId, registeredAt }: LogEntry, tunnels: number): void {
    if (tunnels === 0) return;
    this.#day(userId, dayOf(registeredAt)).tunnels += tunnels;
    if (keyId !== null) this.keyCounts.set(keyId, (this.keyCounts.get(keyId) ?? 0) + tunnels);
  }

  /** Everybody locks rows in this order, so that nobody waits in a circle. */
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

/** The end of the year 9999: later ones are written in ways that not everybody reads. */
const LAST_MS = 253_402_300_799_999;

/** Times of edges, which are milliseconds since the epoch, as the tables keep them. */
export const cappedDate = (ms: number): Date => new Date(Math.min(ms, LAST_MS));

/** In UTC, YYYY-MM-DD. */
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);
