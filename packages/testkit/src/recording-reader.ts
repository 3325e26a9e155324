// A ByteReader for tests: hashes what comes, can stall, and says what happened.
import { createHash, type Hash } from 'node:crypto';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';

/** For whoever must not throw in a test: what was caught at the rim is uncaught again, in a turn of its own, and fails the run. */
export const rethrow = (error: unknown): void => {
  setImmediate(() => {
    throw error;
  });
};

export class RecordingReader implements ByteReader {
  bytes = 0;
  ended = false;
  drains = 0;
  reset: StreamReason | null = null;
  /** While true every delivery answers "stop"; the bytes are taken all the same. */
  stalled = false;
  readonly #hash: Hash = createHash('sha256');
  readonly #end: ByteDuplex;

  constructor(end: ByteDuplex) {
    this.#end = end;
    end.read(this);
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    this.bytes += end - start;
    this.#hash.update(bytes.subarray(start, end));
    return !this.stalled;
  }

  onDrain(): void {
    this.drains += 1;
  }

  onEnd(): void {
    this.ended = true;
  }

  onReset(reason: StreamReason): void {
    this.reset = reason;
  }

  abandon(error: unknown): void {
    rethrow(error);
  }

  goOn(): void {
    this.stalled = false;
    this.#end.resume();
  }

  /** Once: the hash of all that came. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}
