// Readers for tests, which say what happened: of bytes (hashes what comes, can stall) and of datagrams (keeps them).
import { createHash, type Hash } from 'node:crypto';
import type { ByteDuplex, ByteReader, DatagramReader, DatagramStream } from '@tunnel/mux';
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
  readonly #waiting: (() => void)[] = [];

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
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves at the next drain. */
  drained(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
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

export class RecordingDatagrams implements DatagramReader {
  readonly datagrams: Buffer[] = [];
  reset: StreamReason | null = null;
  /** What the reader does beside: to throw, or to answer. */
  onEach: (bytes: Buffer) => void = () => {};
  readonly abandoned: string[] = [];

  constructor(stream: DatagramStream) {
    stream.read(this);
  }

  onDatagram(bytes: Buffer, start: number, end: number): void {
    const copy = Buffer.from(bytes.subarray(start, end));
    this.datagrams.push(copy);
    this.onEach(copy);
  }

  onReset(reason: StreamReason): void {
    this.reset = reason;
  }

  abandon(error: unknown, where: string): void {
    this.abandoned.push(`${where}: ${String(error)}`);
  }

  get texts(): string[] {
    return this.datagrams.map(String);
  }
}
