// How many downloads run at once, and which one ends when another network wants a slot.
import { Fault } from '@tunnel/errors';

/**
 * Downloads at once, in each platform process.
 * @limit api: Downloads of the client at once, per platform process | 503 `DOWNLOADS_BUSY`; a network with the most downloads gives one up for a network with fewer
 */
export const DOWNLOADS_AT_ONCE = 32;
/** Retry-After while all slots are taken. A download of 150 MB over 100 Mbit/s takes about as long. */
const BUSY_RETRY_AFTER_SECS = 10;

interface Slot {
  readonly network: string;
  /** Ends the download. */
  readonly cut: () => void;
}

export class DownloadSlots {
  /** The oldest first. */
  readonly #taken = new Set<Slot>();

  /**
   * Takes a slot, and returns the function that gives the slot back. While all slots are taken, the oldest download of the network with the
   * most downloads is cut, unless the caller's network would then have as many: one network cannot keep all others out. Throws
   * DOWNLOADS_BUSY.
   */
  take(network: string, cut: () => void): () => void {
    if (this.#taken.size >= DOWNLOADS_AT_ONCE) this.#makeRoom(network);
    const slot = { network, cut };
    this.#taken.add(slot);
    return () => void this.#taken.delete(slot);
  }

  #makeRoom(network: string): void {
    const counts = new Map<string, number>();
    for (const slot of this.#taken) counts.set(slot.network, (counts.get(slot.network) ?? 0) + 1);
    const most = Math.max(...counts.values());
    if (most <= (counts.get(network) ?? 0) + 1) throw new Fault('DOWNLOADS_BUSY', { seconds: BUSY_RETRY_AFTER_SECS });
    const oldest = [...this.#taken].find((slot) => counts.get(slot.network) === most);
    if (oldest === undefined) return;
    this.#taken.delete(oldest);
    oldest.cut();
  }
}
