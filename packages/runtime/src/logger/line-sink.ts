// The bounded way out for log lines: never blocks, never throws, never holds more than a named number of bytes.
import type { Outlet } from './outlet.ts';

/** Lines beyond this many waiting bytes are dropped and counted. */
const QUEUE_BYTES = 1024 * 1024;
/** One write carries at most about this much, so that a drop at failure costs little. */
const CHUNK_BYTES = 64 * 1024;
/** `flush` gives up after this long: a reader that stands still must not hold up an exit. */
const FLUSH_MS = 500;

interface WaitingLine {
  readonly text: string;
  readonly bytes: number;
}

export interface LineSinkOptions {
  /** The line that says how many were dropped, once writing works again. */
  readonly droppedNotice: (count: number) => string;
  readonly queueBytes?: number;
}

export class LineSink {
  readonly #outlet: Outlet;
  readonly #droppedNotice: (count: number) => string;
  readonly #queueBytes: number;
  readonly #waitingForEmpty: (() => void)[] = [];
  #queue: WaitingLine[] = [];
  #queuedBytes = 0;
  #writing = false;
  #dropped = 0;
  #unsaidDropped = 0;

  constructor(outlet: Outlet, options: LineSinkOptions) {
    this.#outlet = outlet;
    this.#droppedNotice = options.droppedNotice;
    this.#queueBytes = options.queueBytes ?? QUEUE_BYTES;
    outlet.onExit(() => this.#queue.map((line) => line.text).join(''));
  }

  get droppedLines(): number {
    return this.#dropped;
  }

  push(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (this.#outlet.closed || this.#queuedBytes + bytes > this.#queueBytes) {
      this.#drop(1);
      return;
    }
    this.#queue.push({ text, bytes });
    this.#queuedBytes += bytes;
    if (!this.#writing) this.#pump();
  }

  flush(): Promise<void> {
    if (this.#isEmpty()) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, FLUSH_MS);
      this.#waitingForEmpty.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #pump(): void {
    const chunk = this.#takeChunk();
    if (chunk.length === 0) {
      for (const resolve of this.#waitingForEmpty.splice(0)) resolve();
      return;
    }
    this.#writing = true;
    this.#outlet.write(chunk.map((line) => line.text).join(''), (worked) => {
      this.#writing = false;
      if (worked) this.#sayDropped();
      else this.#drop(chunk.length);
      this.#pump();
    });
  }

  /** Up to a chunk of waiting lines. Their bytes leave the count only now, so that queue and chunk together stay bounded. */
  #takeChunk(): WaitingLine[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && bytes < CHUNK_BYTES) {
      bytes += this.#queue[count]?.bytes ?? 0;
      count += 1;
    }
    this.#queuedBytes -= bytes;
    return this.#queue.splice(0, count);
  }

  #isEmpty(): boolean {
    return this.#queue.length === 0 && !this.#writing;
  }

  #drop(lines: number): void {
    this.#dropped += lines;
    this.#unsaidDropped += lines;
  }

  /** At the end of the queue: the notice stands where the lines are missing, after those that came before them. */
  #sayDropped(): void {
    if (this.#unsaidDropped === 0) return;
    const text = this.#droppedNotice(this.#unsaidDropped);
    this.#unsaidDropped = 0;
    this.#queue.push({ text, bytes: Buffer.byteLength(text) });
    this.#queuedBytes += Buffer.byteLength(text);
  }
}
