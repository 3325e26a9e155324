// Groups the tunnel list by address: tunnels at the same address share a row, which expands to show the single tunnels. Pure functions.
import type { TunnelLogEntry } from '@tunnel/contract';
import { addressOf } from '../../shared/tunnel-address.ts';

export interface AddressRow {
  /** Protocol and address shared by all tunnels of the row. */
  readonly key: string;
  /** The newest live tunnel of the row, or the newest ended tunnel if no tunnel is live. */
  readonly lead: TunnelLogEntry;
  /** All tunnels at the address, in their original order. */
  readonly entries: readonly TunnelLogEntry[];
}

/**
 * Groups tunnels by address. `entries` must contain live tunnels before ended tunnels, each part newest first. The rows are in the order
 * of their first entry.
 */
export const groupByAddress = (entries: readonly TunnelLogEntry[]): AddressRow[] => {
  const rows = new Map<string, { key: string; lead: TunnelLogEntry; entries: TunnelLogEntry[] }>();
  for (const entry of entries) {
    const key = `${entry.protocol} ${addressOf(entry).text}`;
    const row = rows.get(key);
    if (row === undefined) rows.set(key, { key, lead: entry, entries: [entry] });
    else row.entries.push(entry);
  }
  return [...rows.values()];
};

/** A line of the tunnel list: an address, or a single tunnel of the expanded address. */
export interface ListRow {
  /** Unique key of the line, stable across updates of the list. */
  readonly key: string;
  readonly entry: TunnelLogEntry;
  /** True for a single tunnel below its expanded address. */
  readonly isPart: boolean;
  /** Number of tunnels that the line represents. */
  readonly count: number;
  readonly liveCount: number;
  /** Requests of all live tunnels at the address. If no tunnel is live, requests of the newest tunnel. The same applies to `bytes`. */
  readonly requests: number;
  readonly bytes: number;
}

/** Returns the lines of the tunnel list. `open` is the key of the expanded address. */
export const listRows = (rows: readonly AddressRow[], open: string | undefined): ListRow[] =>
  rows.flatMap((row) => {
    const whole = addressLine(row);
    if (row.key !== open || row.entries.length === 1) return [whole];
    return [whole, ...row.entries.map(partLine)];
  });

const addressLine = ({ key, lead, entries }: AddressRow): ListRow => {
  const live = entries.filter(isLive);
  const counted = live.length === 0 ? [lead] : live;
  return {
    key,
    entry: lead,
    isPart: false,
    count: entries.length,
    liveCount: live.length,
    requests: sumOf(counted, ({ request_count }) => request_count),
    bytes: sumOf(counted, ({ bytes_proxied }) => bytes_proxied),
  };
};

const partLine = (entry: TunnelLogEntry): ListRow => ({
  key: entry.id,
  entry,
  isPart: true,
  count: 1,
  liveCount: isLive(entry) ? 1 : 0,
  requests: entry.request_count,
  bytes: entry.bytes_proxied,
});

const isLive = ({ unregistered_at }: TunnelLogEntry): boolean => unregistered_at === null;

const sumOf = (entries: readonly TunnelLogEntry[], of: (entry: TunnelLogEntry) => number): number =>
  entries.reduce((sum, entry) => sum + of(entry), 0);

/** Returns the live tunnels of a line of the list, given the line's key. */
export const liveTunnelsOf = (rows: readonly AddressRow[], lineKey: string): readonly TunnelLogEntry[] => {
  const address = rows.find(({ key }) => key === lineKey);
  const entries = address?.entries ?? rows.flatMap((row) => row.entries.filter(({ id }) => id === lineKey));
  return entries.filter(isLive);
};
