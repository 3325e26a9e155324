// Where lines leave the process. A file is written at once; everything else through its stream, one chunk at a time.
import { fstatSync, writeSync } from 'node:fs';

export interface Outlet {
  /** True once writing can never work again (the reader is gone). */
  readonly closed: boolean;
  /** `done` is called exactly once, never in the middle of `write` for a stream. */
  write(text: string, done: (worked: boolean) => void): void;
  /** What is still waiting when the process ends is written if that works without waiting. */
  onExit(rest: () => string): void;
}

type MaybeStandardStream = NodeJS.WritableStream & {
  readonly fd?: number;
  readonly isTTY?: boolean;
  readonly destroyed?: boolean;
  readonly writableLength?: number;
  readonly _handle?: { setBlocking?(blocking: boolean): number };
};

/** One outlet per stream, however many loggers write to it: each adds listeners to the stream and the process. */
const outlets = new WeakMap<NodeJS.WritableStream, Outlet>();

export const outletOf = (stream: NodeJS.WritableStream): Outlet => {
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

/** Node's own stream for a file dies at the first error; a disk that was full may have room again. */
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
    // Node writes to terminals synchronously: one that is paused (Ctrl-S) would stop the whole process.
    if (stream.isTTY === true) stream._handle?.setBlocking?.(false);
    stream.on('error', () => {
      this.#closed = stream.destroyed === true;
    });
    // Only for stdout and stderr: their descriptors never block once node has opened the stream.
    // While a chunk is stuck in the stream, more text would land in the middle of it.
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
