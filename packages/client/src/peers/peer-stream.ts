// One end of a byte pipe as a Node stream, for programs that dial a peer without a local port.
import { Duplex } from 'node:stream';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';

export class PeerStream extends Duplex implements ByteReader {
  readonly #end: ByteDuplex;
  readonly #onOver: () => void;
  #isOver = false;
  /** Callback of a stream write that could not be sent immediately. */
  #onDrained: (() => void) | null = null;

  /** `onOver` is called exactly once when both directions of the stream have ended. */
  constructor(end: ByteDuplex, onOver: () => void) {
    super({ allowHalfOpen: true });
    this.#end = end;
    this.#onOver = onOver;
    this.once('close', () => this.#over());
    end.read(this);
  }

  // ---- from the peer ----

  onData(bytes: Buffer, start: number, end: number): boolean {
    return this.push(Buffer.from(bytes.subarray(start, end)));
  }

  onDrain(): void {
    const done = this.#onDrained;
    this.#onDrained = null;
    done?.();
  }

  onEnd(): void {
    this.push(null);
  }

  onReset({ text }: StreamReason): void {
    this.#isOver = true;
    this.destroy(new Error(text === '' ? 'the connection was reset' : text));
  }

  abandon(error: unknown): void {
    this.destroy(error instanceof Error ? error : new Error(String(error)));
  }

  // ---- from the program ----

  override _read(): void {
    this.#end.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // The written memory belongs to the program, so unsent bytes are copied.
    if (this.#end.write(chunk, 0, chunk.length, false)) done();
    else this.#onDrained = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#end.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isWhole = this.readableEnded && this.writableFinished;
    if (!this.#isOver && !isWhole) this.#end.reset({ code: 'cancelled', text: error?.message ?? 'closed' });
    done(error);
  }

  #over(): void {
    this.#onOver();
  }
}
