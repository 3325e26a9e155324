// The loaded part of the log of ended tunnels: newest first, without gaps from the newest tunnel down. The log grows at both ends.
// Unchanged entries stay the same object, so that their rows do not render again.
import type { TunnelLogEntry } from '@tunnel/contract';

export const PAGE_SIZE = 100;

export interface EndedLog {
  readonly entries: readonly TunnelLogEntry[];
  /** True if the log contains all ended tunnels, so that there are no older pages. */
  readonly isWhole: boolean;
}

/**
 * Adds a fresh copy of the first page. A page without any known tunnel replaces the log, because tunnels between page and log are
 * missing.
 */
export const withNewest = (log: EndedLog | undefined, page: readonly TunnelLogEntry[]): EndedLog => {
  const isWhole = page.length < PAGE_SIZE;
  const known = new Set(log?.entries.map(({ id }) => id));
  if (log === undefined || (!isWhole && !page.some(({ id }) => known.has(id)))) return { entries: page, isWhole };
  return grown(log, page, log.isWhole || isWhole);
};

/** Adds the page that follows the end of the log. */
export const withOlder = (log: EndedLog, page: readonly TunnelLogEntry[]): EndedLog =>
  grown(log, page, page.length < PAGE_SIZE);

/**
 * Adds a tunnel that has just ended. The log is sorted by start time, so a long-lived tunnel can belong far below the newest, even below
 * the loaded part; then the log stays unchanged.
 */
export const withEntry = (log: EndedLog, entry: TunnelLogEntry): EndedLog => {
  const last = log.entries.at(-1);
  const isBelow = !log.isWhole && last !== undefined && byAge(entry, last) > 0;
  return isBelow || entry.unregistered_at === null ? log : grown(log, [entry], log.isWhole);
};

/** Returns the live tunnels, then the ended tunnels. A resumed tunnel that is in both lists appears only as live. */
export const rowsOf = (live: readonly TunnelLogEntry[], ended: readonly TunnelLogEntry[]): TunnelLogEntry[] => {
  const living = new Set(live.map(({ id }) => id));
  return [...live, ...ended.filter(({ id }) => !living.has(id))];
};

/** Returns the IDs of the tunnels that were live before and no longer are. */
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
