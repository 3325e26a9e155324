// The last requests of one tunnel, oldest first.
import type { Owner } from '@tunnel/core';
import { EDGE_LIMITS } from '../limits.ts';
import type { CaptureKeeper, CaptureRecorder } from './recorder.ts';

export interface CaptureLogOwner {
  /** After a change, with how many bytes more, or fewer, are kept. */
  onChanged(log: CaptureLog, bytes: number): void;
}

export class CaptureLog implements CaptureKeeper {
  readonly tunnelId: string;
  readonly owner: Owner;
  bytes = 0;
  /** On the monotonic clock; null while the tunnel lives. */
  endedMs: number | null = null;
  /** Older requests were here and had to go. */
  isTruncated = false;
  readonly #store: CaptureLogOwner;
  readonly #recorders: CaptureRecorder[] = [];

  constructor(tunnelId: string, owner: Owner, store: CaptureLogOwner) {
    this.tunnelId = tunnelId;
    this.owner = owner;
    this.#store = store;
  }

  get size(): number {
    return this.#recorders.length;
  }

  /** Newest first. */
  newest(limit: number): CaptureRecorder[] {
    return this.#recorders.slice(-limit).reverse();
  }

  find(isIt: (recorder: CaptureRecorder) => boolean): CaptureRecorder | undefined {
    return this.#recorders.find(isIt);
  }

  add(recorder: CaptureRecorder): void {
    this.#recorders.push(recorder);
    this.#grow(recorder.keptBytes);
  }

  onGrown(recorder: CaptureRecorder, bytes: number): void {
    recorder.keptBytes += bytes;
    this.#grow(bytes);
  }

  onDiscarded(recorder: CaptureRecorder): void {
    const at = this.#recorders.lastIndexOf(recorder);
    if (at === -1) return;
    this.#recorders.splice(at, 1);
    this.bytes -= recorder.keptBytes;
    this.#store.onChanged(this, -recorder.keptBytes);
  }

  #grow(bytes: number): void {
    this.bytes += bytes;
    this.#store.onChanged(this, bytes);
    while (
      this.#recorders.length > EDGE_LIMITS.CAPTURES_PER_TUNNEL ||
      this.bytes > EDGE_LIMITS.CAPTURE_BYTES_PER_TUNNEL
    ) {
      this.dropOldest(1);
    }
  }

  dropOldest(count: number): void {
    let freed = 0;
    for (let left = count; left > 0; left -= 1) {
      const recorder = this.#recorders.shift();
      if (recorder === undefined) break;
      recorder.keeper = null;
      freed += recorder.keptBytes;
      this.isTruncated = true;
    }
    this.bytes -= freed;
    this.#store.onChanged(this, -freed);
  }
}
