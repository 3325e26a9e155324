// The size of a body, and a copy of its first bytes.
import { CLIENT_LIMITS } from '../limits.ts';

export class BodyKeep {
  readonly #pieces: Buffer[] = [];
  #keptBytes = 0;
  #bytes = 0;

  /** Of the whole body so far. */
  get bytes(): number {
    return this.#bytes;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  get isWhole(): boolean {
    return this.#keptBytes === this.#bytes;
  }

  /** `keep` false counts only. Returns how many bytes were copied. */
  add(bytes: Buffer, start: number, end: number, keep: boolean): number {
    this.#bytes += end - start;
    const room = keep ? CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES - this.#keptBytes : 0;
    const taken = Math.min(room, end - start);
    if (taken > 0) this.#pieces.push(Buffer.from(bytes.subarray(start, start + taken)));
    this.#keptBytes += taken;
    return taken;
  }

  kept(): Buffer {
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces);
  }
}
