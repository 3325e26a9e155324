// Test readers that record events. The byte reader hashes the received bytes and can stall; the datagram reader stores the datagrams.
import { createHash, type Hash } from 'node:crypto';
import type { ByteDuplex, ByteReader, DatagramReader, DatagramStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';

/** Rethrows an error asynchronously as an uncaught error, so that the test run fails. For callbacks that must not throw. */
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
  /** Whether onData returns false to stop the delivery. The delivered bytes are counted and hashed anyway. */
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

  /** Resolves at the next drain event. */
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

  /** Returns the hash of all received bytes. Can be called only once. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}

export class RecordingDatagrams implements DatagramReader {
  readonly datagrams: Buffer[] = [];
  reset: StreamReason | null = null;
  /** Callback for every datagram. A test can throw or reply in the callback. */
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
