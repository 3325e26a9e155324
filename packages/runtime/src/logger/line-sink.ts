// Bounded output for log lines: never blocks, never throws, and buffers a limited number of bytes.
import { fstatSync, writeSync } from 'node:fs';

/** Maximum bytes of log lines waiting to be written. Further lines are dropped and counted. */
const QUEUE_BYTES = 1024 * 1024;
/** Approximate maximum of a single write, so that a failed write loses little. */
const CHUNK_BYTES = 64 * 1024;
/** Time limit of `flush`, so that a stalled reader does not delay an exit. */
const FLUSH_MS = 500;

interface WaitingLine {
  readonly text: string;
  readonly bytes: number;
}

interface LineSinkOptions {
  /** Creates the log line that reports dropped lines once writing works again. */
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

  /** Takes a chunk of waiting lines. Their bytes stay counted until now, so that queue and chunk together are bounded. */
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

  /** Appends the notice about dropped lines to the queue, where the lines are missing. */
  #sayDropped(): void {
    if (this.#unsaidDropped === 0) return;
    const text = this.#droppedNotice(this.#unsaidDropped);
    this.#unsaidDropped = 0;
    this.#queue.push({ text, bytes: Buffer.byteLength(text) });
    this.#queuedBytes += Buffer.byteLength(text);
  }
}

// Output of lines. Files are written synchronously, everything else through the stream, one chunk at a time.

export interface Outlet {
  /** True once the reader of the log output is gone and writing can never work again. */
  readonly closed: boolean;
  /** Writes text and calls `done` exactly once; for a stream never inside `write`. */
  write(text: string, done: (worked: boolean) => void): void;
  /** Registers the lines still waiting at exit. They are written if that is possible without waiting. */
  onExit(rest: () => string): void;
}

type MaybeStandardStream = NodeJS.WritableStream & {
  readonly fd?: number;
  readonly isTTY?: boolean;
  readonly destroyed?: boolean;
  readonly writableLength?: number;
  readonly _handle?: { setBlocking?(blocking: boolean): number };
};

/** One outlet per stream, shared by its loggers, because an outlet adds listeners to the stream and the process. */
const outlets = new WeakMap<NodeJS.WritableStream, Outlet>();

export const sharedOutlet = (stream: NodeJS.WritableStream): Outlet => {
  const known = outlets.get(stream);
  if (known !== undefined) return known;
  const { fd } = stream as MaybeStandardStream;
  const outlet = typeof fd === 'number' && isFile(fd) ? new FileOutlet(fd) : new StreamOutlet(stream, fd);
  outlets.set(stream, outlet);
  return outlet;
};

const isFile = (fd: number): boolean => {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
};

/** Writes to a file descriptor. Node's file stream would be destroyed by the first error, but a full disk may have space again later. */
class FileOutlet implements Outlet {
  readonly closed = false;
  readonly #fd: number;
  readonly #rests: (() => string)[] = [];

  constructor(fd: number) {
    this.#fd = fd;
    writeAtExit(fd, this.#rests);
  }

  write(text: string, done: (worked: boolean) => void): void {
    const worked = writeNow(this.#fd, text);
    queueMicrotask(() => done(worked));
  }

  onExit(rest: () => string): void {
    this.#rests.push(rest);
  }
}

class StreamOutlet implements Outlet {
  readonly #stream: MaybeStandardStream;
  readonly #rests: (() => string)[] = [];
  #closed = false;

  constructor(stream: MaybeStandardStream, fd: number | undefined) {
    this.#stream = stream;
    // Node writes to terminals synchronously, so a paused terminal (Ctrl-S) would block the whole process.
    if (stream.isTTY === true) stream._handle?.setBlocking?.(false);
    stream.on('error', () => {
      this.#closed = stream.destroyed === true;
    });
    // Only for stdout and stderr, which do not block once Node has opened the stream. While a chunk is stuck in the stream, more text would
    // end up in the middle of it.
    if (fd === 1 || fd === 2) writeAtExit(fd, this.#rests, () => stream.writableLength === 0);
  }

  get closed(): boolean {
    return this.#closed;
  }

  write(text: string, done: (worked: boolean) => void): void {
    this.#stream.write(text, (error?: Error | null) => done(error === undefined || error === null));
  }

  onExit(rest: () => string): void {
    this.#rests.push(rest);
  }
}

const writeAtExit = (fd: number, rests: readonly (() => string)[], free: () => boolean = () => true): void => {
  process.once('exit', () => {
    if (free()) writeNow(fd, rests.map((rest) => rest()).join(''));
  });
};

const writeNow = (fd: number, text: string): boolean => {
  const bytes = Buffer.from(text);
  try {
    for (let offset = 0; offset < bytes.length; ) offset += writeSync(fd, bytes, offset);
    return true;
  } catch {
    return false;
  }
};
