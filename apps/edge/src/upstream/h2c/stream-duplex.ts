// Adapts a mux stream to a Node.js Duplex, for the HTTP/2 client of Node.js.
import { Duplex } from 'node:stream';
import { BROKEN, type ByteReader, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { UpstreamStream } from '../upstream.ts';

/** Maximum bytes of an h2c connection buffered in each direction. */
const H2C_STREAM_BUFFER_BYTES = 64 * 1024;

const DROPPED: StreamReason = { code: 'cancelled', text: 'the connection is no longer used' };

type Callback = (error?: Error | null) => void;

export class StreamDuplex extends Duplex implements ByteReader {
  readonly #stream: UpstreamStream;
  readonly #onBytes: (written: number, read: number) => void;
  readonly #report: ReportInternalError;
  /** True while the stream waits for resume(). */
  #isPaused = false;
  /** Callback of a write that the stream has not accepted completely. */
  #onWritten: Callback | null = null;
  #isReset = false;

  constructor(stream: UpstreamStream, onBytes: (written: number, read: number) => void, report: ReportInternalError) {
    super({
      readableHighWaterMark: H2C_STREAM_BUFFER_BYTES,
      writableHighWaterMark: H2C_STREAM_BUFFER_BYTES,
    });
    this.#stream = stream;
    this.#onBytes = onBytes;
    this.#report = report;
    stream.read(this);
  }

  // ---- events of the stream ----

  onData(bytes: Buffer, start: number, end: number): boolean {
    this.#onBytes(0, end - start);
    // The bytes are copied, because the reader of a Duplex keeps the buffers.
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

  abandon(error: unknown, where: string): void {
    try {
      this.#report(error, where);
    } finally {
      this.destroy(new Error(BROKEN.text));
    }
  }

  // ---- calls from Node ----

  override _read(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    try {
      this.#stream.resume();
    } catch (error) {
      this.abandon(error, 'h2c.read');
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    this.#sendAll([{ chunk }], callback);
  }

  override _writev(chunks: { readonly chunk: Buffer }[], callback: Callback): void {
    this.#sendAll(chunks, callback);
  }

  /** Writes chunks without lending their memory: a stream writes frame headers into borrowed memory, but the chunks belong to Node. */
  #sendAll(chunks: { readonly chunk: Buffer }[], callback: Callback): void {
    let isFree = true;
    try {
      for (const { chunk } of chunks) {
        this.#onBytes(chunk.length, 0);
        isFree = this.#stream.write(chunk, 0, chunk.length, false) && isFree;
      }
    } catch (error) {
      this.abandon(error, 'h2c.write');
    }
    if (isFree) callback();
    else this.#onWritten = callback;
  }

  override _final(callback: Callback): void {
    try {
      this.#stream.end(() => callback());
    } catch (error) {
      this.abandon(error, 'h2c.end');
    }
  }

  override _destroy(error: Error | null, callback: Callback): void {
    const isOver = this.readableEnded && this.writableFinished;
    try {
      if (!isOver && !this.#isReset) this.#stream.reset(DROPPED);
    } catch (second) {
      this.#report(second, 'h2c.destroy');
    }
    callback(error);
  }
}
