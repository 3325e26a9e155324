// A part of an open file as the body of a response: read piece by piece, as fast as the caller takes the pieces, and within time limits.
import type { Clock, Timer } from '@tunnel/runtime';
import type { OpenedFile } from '../../../services/downloads/release-folder.ts';
import type { FilePart } from './range.rules.ts';

/** Bytes in memory for each download. */
const PIECE_BYTES = 128 * 1024;
/**
 * Time for the caller to take one piece of 128 KiB, so that a caller who stopped reading does not keep a slot.
 * @limit api: Download of the client, time for the next 128 KiB | the connection is closed
 */
export const DOWNLOAD_IDLE_MS = 30_000;
/**
 * Time for a whole response. A caller that reads slowly continues with a range request.
 * @limit api: Download of the client, total time | the connection is closed
 */
export const DOWNLOAD_MAX_MS = 60 * 60_000;

export interface FileStreamOptions extends FilePart {
  readonly file: OpenedFile;
  readonly clock: Clock;
  /** Closes the connection, which shows the caller that the response is incomplete. Null for a call in the process, where the body fails. */
  readonly disconnect: (() => void) | null;
  /** Called when the response must not be completed. */
  readonly onCut: (reason: string) => void;
  /** Called once, when the file has been closed. */
  readonly onEnd: () => void;
}

export class FileStream {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #options: FileStreamOptions;
  #position: number;
  #left: number;
  #hasEnded = false;
  #controller: ReadableStreamDefaultController | null = null;
  #idle: Timer;
  readonly #total: Timer;

  constructor(options: FileStreamOptions) {
    const { clock, start, length } = options;
    this.#options = options;
    this.#position = start;
    this.#left = length;
    this.#idle = this.#startIdle();
    this.#total = clock.setTimeout(() => this.cut(`not complete within ${DOWNLOAD_MAX_MS / 1000} s`), DOWNLOAD_MAX_MS);
    this.body = new ReadableStream(
      {
        start: (controller) => void (this.#controller = controller),
        pull: (controller) => this.#pull(controller),
        cancel: () => this.#end(),
      },
      // Without a queue: a piece is read when the previous piece has left for the network.
      { highWaterMark: 0 },
    );
  }

  /** Ends the response to a caller that has disconnected, even while no reader takes the body. */
  leave(): void {
    this.#end();
  }

  /** Ends the response before the last byte. */
  cut(reason: string): void {
    if (this.#hasEnded) return;
    this.#end();
    const { disconnect, onCut } = this.#options;
    onCut(reason);
    if (disconnect === null) this.#controller?.error(new Error(reason));
    else disconnect();
  }

  async #pull(controller: ReadableStreamDefaultController): Promise<void> {
    try {
      const piece = await this.#read();
      if (this.#hasEnded) return;
      this.#idle.cancel();
      this.#idle = this.#startIdle();
      controller.enqueue(piece);
      if (this.#left > 0) return;
      this.#end();
      controller.close();
    } catch (error) {
      this.cut(error instanceof Error ? error.message : String(error));
    }
  }

  async #read(): Promise<Uint8Array<ArrayBuffer>> {
    const { file } = this.#options;
    const piece = new Uint8Array(Math.min(PIECE_BYTES, this.#left));
    const { bytesRead } = await file.handle.read(piece, 0, piece.length, this.#position);
    if (bytesRead === 0) throw new Error('the file became shorter');
    this.#position += bytesRead;
    this.#left -= bytesRead;
    // The last bytes are held back if the file was written to: a response that mixes two contents must not look complete.
    if (this.#left === 0 && !(await file.isUnchanged())) throw new Error('the file has changed');
    return piece.subarray(0, bytesRead);
  }

  #startIdle(): Timer {
    return this.#options.clock.setTimeout(
      () => this.cut(`no progress within ${DOWNLOAD_IDLE_MS / 1000} s`),
      DOWNLOAD_IDLE_MS,
    );
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#idle.cancel();
    this.#total.cancel();
    const { file, onEnd } = this.#options;
    // A file that cannot be closed was only read: nothing is lost.
    void file.handle.close().catch(() => {});
    onEnd();
  }
}
