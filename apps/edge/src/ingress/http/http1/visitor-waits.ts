// How long an HTTP/1.1 visitor is waited for: while it takes nothing, while its service takes nothing of it, and after our last word.
import { StallWatch } from '@tunnel/core';
import { EDGE_LIMITS } from '../../../limits.ts';
import type { VisitorDuplex } from '../visitor.ts';
import type { Http1Input } from './http1-input.ts';

/** A connection on which nothing moves, or that is no more. */
export class Stalls {
  // Made when something waits for the first time: of most connections nothing ever does.
  #sending: StallWatch | null = null;
  #uploading: StallWatch | null = null;

  /** Once a second. An input that is paused is a body of which its service takes no more. */
  isOver(nowMs: number, end: VisitorDuplex, { isPaused, readBytes }: Http1Input): boolean {
    if (isPaused && end.hasLostPeer) return true;
    const isUnread = end.queuedBytes > 0;
    const takenBytes = isUnread || isPaused ? end.takenBytes : 0;
    if (isUnread) this.#sending ??= new StallWatch(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS);
    if (isPaused) this.#uploading ??= new StallWatch(EDGE_LIMITS.HTTP_STALLED_BODY_MS);
    const isUnsent = this.#sending?.isOver(nowMs, isUnread, takenBytes) ?? false;
    return (this.#uploading?.isOver(nowMs, isPaused, takenBytes + readBytes) ?? false) || isUnsent;
  }
}

/** Who is still sending after our last word has not read it, and would lose it with a reset. */
export class Linger {
  /** Ends our direction. `onSaidAll`: all of it is out. */
  static behind(end: VisitorDuplex, { now }: { readonly now: () => number }, onSaidAll: () => void): Linger {
    const linger = new Linger();
    end.end(() => {
      linger.onSaidAll(now());
      onSaidAll();
    });
    return linger;
  }

  #untilMs = Number.POSITIVE_INFINITY;
  #endMs = Number.POSITIVE_INFINITY;
  #saidAll = false;

  /** Our last byte is out. */
  get saidAll(): boolean {
    return this.#saidAll;
  }

  onSaidAll(nowMs: number): void {
    this.#saidAll = true;
    this.#endMs = nowMs + EDGE_LIMITS.HTTP_LINGER_MAX_MS;
    this.onBytes(nowMs);
  }

  /** The visitor sends; until our last byte is out the time is its own. */
  onBytes(nowMs: number): void {
    if (this.#saidAll) this.#untilMs = Math.min(nowMs + EDGE_LIMITS.HTTP_LINGER_MS, this.#endMs);
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#untilMs;
  }
}
