// The tunnels that have ended, as far as they are known: newest first, without a gap from the top. It grows at both
// ends, and what did not change stays the same object, so that it is not drawn again.
import type { TunnelLogEntry } from '@tunnel/contract';

export const PAGE_SIZE = 100;

export interface EndedLog {
  readonly entries: readonly TunnelLogEntry[];
  /** There are no older ones. */
  readonly isWhole: boolean;
}

/** The first page, asked for again. One that has nothing in common with what was known begins a new log: there is a gap. */
export const withNewest = (log: EndedLog | undefined, page: readonly TunnelLogEntry[]): EndedLog => {
  const isWhole = page.length < PAGE_SIZE;
  const known = new Set(log?.entries.map(({ id }) => id));
  if (log === undefined || (!isWhole && !page.some(({ id }) => known.has(id)))) return { entries: page, isWhole };
  return grown(log, page, log.isWhole || isWhole);
};

/** The page that begins where the log ends. */
export const withOlder = (log: EndedLog, page: readonly TunnelLogEntry[]): EndedLog =>
  grown(log, page, page.length < PAGE_SIZE);

/** One that was long alive: it ended now, and stands far below the newest. */
export const withEntry = (log: EndedLog, entry: TunnelLogEntry): EndedLog => {
  const last = log.entries.at(-1);
  const isBelow = !log.isWhole && last !== undefined && byAge(entry, last) > 0;
  return isBelow || entry.unregistered_at === null ? log : grown(log, [entry], log.isWhole);
};

/** Living ones first. One that came back to life is there once. */
export const rowsOf = (live: readonly TunnelLogEntry[], ended: readonly TunnelLogEntry[]): TunnelLogEntry[] => {
  const living = new Set(live.map(({ id }) => id));
  return [...live, ...ended.filter(({ id }) => !living.has(id))];
};

/** Those that were alive before and are not now. */
export const departed = (before: readonly TunnelLogEntry[], now: readonly TunnelLogEntry[]): string[] => {
  const living = new Set(now.map(({ id }) => id));
  return before.filter(({ id }) => !living.has(id)).map(({ id }) => id);
};

const grown = (log: EndedLog, page: readonly TunnelLogEntry[], isWhole: boolean): EndedLog => {
  const byId = new Map(log.entries.map((entry) => [entry.id, entry]));
  const changed = page.filter((entry) => !isSame(byId.get(entry.id), entry));
  if (changed.length === 0) return log.isWhole === isWhole ? log : { ...log, isWhole };
  for (const entry of changed) byId.set(entry.id, entry);
  return { entries: [...byId.values()].sort(byAge), isWhole };
};

const byAge = (a: TunnelLogEntry, b: TunnelLogEntry): number => {
  if (a.registered_at !== b.registered_at) return a.registered_at < b.registered_at ? 1 : -1;
  return a.id < b.id ? 1 : -1;
};

const isSame = (known: TunnelLogEntry | undefined, entry: TunnelLogEntry): boolean =>
  known !== undefined &&
  known.unregistered_at === entry.unregistered_at &&
  known.request_count === entry.request_count &&
  known.bytes_proxied === entry.bytes_proxied &&
  known.label === entry.label &&
  known.public_url === entry.public_url;
