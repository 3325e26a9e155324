// A stream of a session as a Duplex of node, for what knows nothing else: its HTTP/2 client.
import { Duplex } from 'node:stream';
import type { ByteReader, MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';

const DROPPED: StreamReason = { code: 'cancelled', text: 'the connection is not used any more' };

type Callback = (error?: Error | null) => void;

export class StreamDuplex extends Duplex implements ByteReader {
  readonly #stream: MuxStream;
  readonly #onBytes: (written: number, read: number) => void;
  /** The stream waits for resume(). */
  #isPaused = false;
  /** Of a write that has not left. */
  #onWritten: Callback | null = null;
  #isReset = false;

  constructor(stream: MuxStream, onBytes: (written: number, read: number) => void) {
    super({
      readableHighWaterMark: EDGE_LIMITS.H2C_STREAM_BUFFER_BYTES,
      writableHighWaterMark: EDGE_LIMITS.H2C_STREAM_BUFFER_BYTES,
    });
    this.#stream = stream;
    this.#onBytes = onBytes;
    stream.read(this);
  }

  // ---- from the stream ----

  onData(bytes: Buffer, start: number, end: number): boolean {
    this.#onBytes(0, end - start);
    // Who reads a Duplex keeps what it gets.
    this.#isPaused = !this.push(Buffer.from(bytes.subarray(start, end)));
    return !this.#isPaused;
  }

  onDrain(): void {
    const onWritten = this.#onWritten;
    this.#onWritten = null;
    onWritten?.();
  }

  onEnd(): void {
    this.push(null);
  }

  onReset(reason: StreamReason): void {
    this.#isReset = true;
    this.destroy(Object.assign(new Error(reason.text), { code: reason.code }));
  }

  // ---- from node ----

  override _read(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#stream.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#send(chunk)) callback();
    else this.#onWritten = callback;
  }

  override _writev(chunks: { readonly chunk: Buffer }[], callback: Callback): void {
    let isFree = true;
    for (const { chunk } of chunks) isFree = this.#send(chunk) && isFree;
    if (isFree) callback();
    else this.#onWritten = callback;
  }

  /** Not borrowed: a stream writes its frame headers into memory that it borrows, and this is somebody else's. */
  #send(chunk: Buffer): boolean {
    this.#onBytes(chunk.length, 0);
    return this.#stream.write(chunk, 0, chunk.length, false);
  }

  override _final(callback: Callback): void {
    this.#stream.end(() => callback());
  }

  override _destroy(error: Error | null, callback: Callback): void {
    const isOver = this.readableEnded && this.writableFinished;
    if (!isOver && !this.#isReset) this.#stream.reset(DROPPED);
    callback(error);
  }
}
