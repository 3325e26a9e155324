// What one udp tunnel dropped and the edge has not been told yet: it counts for both ends, where people look.
import { type DatagramDrop, WIRE_LIMITS } from '@tunnel/protocol';
import type { DropReason } from './traffic.ts';

/** visitors whose dropped datagrams wait by name to be told to the edge; those of others are told without */
export const UNREPORTED_VISITORS_MAX = 1000;

type Counts = Partial<Record<DropReason, number>>;

export class UnreportedDrops {
  /** By visitor; the empty one stands for those beyond the bound. */
  readonly #rows = { in: new Map<string, Counts>(), out: new Map<string, Counts>() };

  add(visitor: string, direction: DatagramDrop['direction'], reason: DropReason, datagrams: number): void {
    const rows = this.#rows[direction];
    const named = rows.has(visitor) || rows.size < UNREPORTED_VISITORS_MAX ? visitor : '';
    const counts = rows.get(named) ?? {};
    counts[reason] = (counts[reason] ?? 0) + datagrams;
    rows.set(named, counts);
  }

  /** As many rows as a message has, oldest first; they are the caller's now. Of a visitor all or none. */
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
