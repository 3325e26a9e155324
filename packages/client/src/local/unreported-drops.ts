// Datagrams dropped by a udp tunnel and not yet reported to the edge, which shows the counts of both ends.
import { type DatagramDrop, WIRE_LIMITS } from '@tunnel/protocol';
import type { DropReason } from './traffic.ts';

/** Maximum number of visitors with separate counts. Drops of further visitors are reported without an address. */
export const UNREPORTED_VISITORS_MAX = 1000;

type Counts = Partial<Record<DropReason, number>>;

export class UnreportedDrops {
  /** Counts of dropped datagrams by visitor. The empty key collects visitors above the limit. */
  readonly #rows = { in: new Map<string, Counts>(), out: new Map<string, Counts>() };

  add(visitor: string, direction: DatagramDrop['direction'], reason: DropReason, datagrams: number): void {
    const rows = this.#rows[direction];
    const named = rows.has(visitor) || rows.size < UNREPORTED_VISITORS_MAX ? visitor : '';
    const counts = rows.get(named) ?? {};
    counts[reason] = (counts[reason] ?? 0) + datagrams;
    rows.set(named, counts);
  }

  /** Removes and returns the oldest rows, as many as fit into a message. All rows of a visitor stay together. */
  take(): DatagramDrop[] {
    const taken: DatagramDrop[] = [];
    for (const direction of ['in', 'out'] as const) {
      const rows = this.#rows[direction];
      for (const [visitor, counts] of rows) {
        const drops = Object.entries(counts) as [DropReason, number][];
        if (taken.length + drops.length > WIRE_LIMITS.DATAGRAM_DROPS_PER_MESSAGE) return taken;
        rows.delete(visitor);
        for (const [reason, datagrams] of drops) taken.push({ visitor, direction, reason, datagrams });
      }
    }
    return taken;
  }
}
