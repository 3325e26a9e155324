// An in-process connection to a Node server, without a socket: one end is joined with a visitor's stream, the server uses the other end as
// its socket. The server gets one request at a time, which limits the resources per connection.
import { Duplex } from 'node:stream';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';

/** The server's end. Responses pass without a copy; requests are copied, since they are small. */
export class ServerConnection extends Duplex {
  /** End of the connection that is joined with the visitor's stream. */
  readonly visitorEnd: ByteDuplex = {
    read: (reader) => this.#attach(reader),
    write: (bytes, start, end) => this.#take(bytes, start, end),
    resume: () => this.#resumeWrites(),
    end: (onFlushed) => this.#takeEnd(onFlushed),
    reset: () => this.#cut(),
  };
  #reader: ByteReader | null = null;
  /** Callback of a write of the server that the visitor's end has not consumed yet. */
  #written: (() => void) | null = null;
  /** Chain of requests that were started and not answered yet. */
  #turns: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** True if the visitor's stream was asked to pause. */
  #isStopped = false;
  #endCame = false;
  #isCut = false;

  constructor() {
    // The two directions of the connection end independently.
    super({ allowHalfOpen: true, decodeStrings: true });
  }

  get isAnswering(): boolean {
    return this.#waiting > 0;
  }

  /** Answers requests one after the other, even if several arrived together. `answer` resolves when its response is closed. */
  inTurn(answer: () => Promise<void>): void {
    this.#waiting += 1;
    this.#turns = this.#turns
      .then(async () => {
        // If the visitor has left, no response is needed and no file is opened.
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
    // The server has already ended its response, so further bytes of the visitor are dropped.
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

  /**
   * Passes the visitor's end to the server once all requests were read and answered, because a server that sees the end earlier closes
   * before answering.
   */
  readonly #passEnd = (): void => {
    if (this.destroyed || this.#waiting > 0) return;
    if (this.readableLength === 0) this.push(null);
    // The server reads in a later turn, and the data may start another request.
    else setImmediate(this.#passEnd);
  };

  /** Lets the visitor's stream continue once the server is ready for more data. */
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
      // The chunk of the response stays unchanged until the visitor's end resumes.
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
    // A visitor who left is not reported as an error of the server.
    done(this.#isCut ? null : error);
  }

  /** Ends the visitor's connection after an internal error. */
  #abandon(error: unknown, where: string): void {
    if (this.#reader === null) this.destroy();
    else this.#reader.abandon(error, where);
  }
}

const CUT_OFF: StreamReason = { code: 'peer-reset', text: 'the file server closed the connection' };
