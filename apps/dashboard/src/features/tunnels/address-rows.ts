// Rows of the tunnel list: tunnels at the same address are one row, which can be opened to show each of them. Pure.
import type { TunnelLogEntry } from '@tunnel/contract';
import { addressOf } from '../../shared/tunnel-address.ts';

export interface AddressRow {
  /** Protocol and address, which all tunnels of the row share. */
  readonly key: string;
  /** The newest live tunnel, or the newest ended one when none is live. */
  readonly lead: TunnelLogEntry;
  /** All tunnels at the address, in the order in which they were given. */
  readonly entries: readonly TunnelLogEntry[];
}

/** `entries`: live ones first, newest first among the live and among the ended. Rows keep the order of their first entry. */
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

/** A line of the list: an address, or one of the tunnels of the address that is open. */
export interface ListRow {
  /** Unique in the list, and the same after an update. */
  readonly key: string;
  readonly entry: TunnelLogEntry;
  /** A tunnel below its open address. */
  readonly isPart: boolean;
  /** Tunnels that the line stands for. */
  readonly count: number;
  readonly liveCount: number;
  /** Sums of the live tunnels; of the newest tunnel when none is live. */
  readonly requests: number;
  readonly bytes: number;
}

/** `open`: key of the address whose tunnels are listed below it. */
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

/** The live tunnels of a line of the list, by its key. */
export const liveTunnelsOf = (rows: readonly AddressRow[], lineKey: string): readonly TunnelLogEntry[] => {
  const address = rows.find(({ key }) => key === lineKey);
  const entries = address?.entries ?? rows.flatMap((row) => row.entries.filter(({ id }) => id === lineKey));
  return entries.filter(isLive);
};
