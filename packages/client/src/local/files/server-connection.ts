// A connection to a server of Node in this process, with no socket: one end is what a visitor's stream is joined with, the other what the server
// takes for its socket. One request at a time is before the server, so what it opens for one connection is bounded.
import { Duplex } from 'node:stream';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';

/** The server's end. Bytes go through without a copy; what the server reads are requests, which are small. */
export class ServerConnection extends Duplex {
  /** The visitor's end. */
  readonly visitorEnd: ByteDuplex = {
    read: (reader) => this.#attach(reader),
    write: (bytes, start, end) => this.#take(bytes, start, end),
    resume: () => this.#resumeWrites(),
    end: (onFlushed) => this.#takeEnd(onFlushed),
    reset: () => this.#cut(),
  };
  #reader: ByteReader | null = null;
  /** Of a write that the visitor's end has not finished with. */
  #written: (() => void) | null = null;
  /** Requests that were begun and are not answered. */
  #turns: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** The visitor's end was told to stop. */
  #isStopped = false;
  #endCame = false;
  #isCut = false;

  constructor() {
    // Whole messages pass in and out; an end of one direction is no end of the other.
    super({ allowHalfOpen: true, decodeStrings: true });
  }

  get isAnswering(): boolean {
    return this.#waiting > 0;
  }

  /** Answers one request after the other, also those that came in one piece. `answer` settles when its response is closed. */
  inTurn(answer: () => Promise<void>): void {
    this.#waiting += 1;
    this.#turns = this.#turns
      .then(async () => {
        // Whoever has gone needs no answer, and nothing is to be opened for it.
        if (!this.destroyed) await answer();
        this.#waiting -= 1;
        if (this.#waiting === 0) this.#goOn();
      })
      .catch((error: unknown) => this.#abandon(error, 'files.answer'));
  }

  // ---- from the visitor ----

  #attach(reader: ByteReader): void {
    this.#reader = reader;
  }

  #take(bytes: Buffer, start: number, end: number): boolean {
    // The server has said its last word.
    if (this.destroyed || this.writableEnded) return true;
    const more = this.push(Buffer.from(bytes.subarray(start, end)));
    this.#isStopped = !more || this.#waiting > 0;
    return !this.#isStopped;
  }

  #takeEnd(onFlushed?: () => void): void {
    this.#endCame = true;
    this.#passEnd();
    onFlushed?.();
  }

  /** A server that hears of the end before it has answered ends, too: it is told when all it was sent is read and answered. */
  readonly #passEnd = (): void => {
    if (this.destroyed || this.#waiting > 0) return;
    if (this.readableLength === 0) this.push(null);
    // It reads in a later turn, and what it reads may begin a request.
    else setImmediate(this.#passEnd);
  };

  /** The server is ready for more. */
  #goOn(): void {
    if (this.destroyed) return;
    if (this.#endCame) this.#passEnd();
    else if (this.#isStopped) {
      this.#isStopped = false;
      this.#reader?.onDrain();
    }
  }

  #cut(): void {
    this.#isCut = true;
    this.destroy();
  }

  override _read(): void {
    if (this.#waiting === 0 && !this.#endCame) this.#goOn();
  }

  // ---- from the server ----

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    try {
      // The chunk stays untouched until the visitor's end goes on.
      if (this.#reader?.onData(chunk, 0, chunk.length, true) ?? true) done();
      else this.#written = done;
    } catch (error) {
      this.#abandon(error, 'files.data');
    }
  }

  #resumeWrites(): void {
    const done = this.#written;
    this.#written = null;
    done?.();
  }

  override _final(done: (error?: Error | null) => void): void {
    try {
      this.#reader?.onEnd();
      done();
    } catch (error) {
      this.#abandon(error, 'files.end');
    }
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isWhole = this.#endCame && this.writableFinished;
    try {
      if (!this.#isCut && !isWhole) this.#reader?.onReset(CUT_OFF);
    } catch (thrown) {
      this.#abandon(thrown, 'files.reset');
    }
    // Whoever left is no trouble of the server.
    done(this.#isCut ? null : error);
  }

  /** What threw costs this visitor: its reader ends both ends. */
  #abandon(error: unknown, where: string): void {
    if (this.#reader === null) this.destroy();
    else this.#reader.abandon(error, where);
  }
}

const CUT_OFF: StreamReason = { code: 'peer-reset', text: 'the file server closed the connection' };
