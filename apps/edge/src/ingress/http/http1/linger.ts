// How long a visitor is listened to after our last word. Who is still sending has not read it, and would lose it with a reset.
import { EDGE_LIMITS } from '../../../limits.ts';

export class Linger {
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
