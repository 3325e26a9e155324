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
  readonly _handle?: { setBlocking?(blocking: boolean): number };
};

export const openOutlet = (stream: NodeJS.WritableStream): Outlet => {
  const { fd } = stream as MaybeStandardStream;
  return typeof fd === 'number' && isFile(fd) ? new FileOutlet(fd) : new StreamOutlet(stream, fd);
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

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(text: string, done: (worked: boolean) => void): void {
    const worked = writeNow(this.#fd, text);
    queueMicrotask(() => done(worked));
  }

  onExit(rest: () => string): void {
    process.once('exit', () => writeNow(this.#fd, rest()));
  }
}

class StreamOutlet implements Outlet {
  readonly #stream: MaybeStandardStream;
  readonly #fd: number | undefined;
  #closed = false;

  constructor(stream: MaybeStandardStream, fd: number | undefined) {
    this.#stream = stream;
    this.#fd = fd;
    // Node writes to terminals synchronously: one that is paused (Ctrl-S) would stop the whole process.
    if (stream.isTTY === true) stream._handle?.setBlocking?.(false);
    stream.on('error', () => {
      this.#closed = stream.destroyed !== false;
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  write(text: string, done: (worked: boolean) => void): void {
    this.#stream.write(text, (error?: Error | null) => done(error === undefined || error === null));
  }

  onExit(rest: () => string): void {
    const fd = this.#fd;
    // Only for stdout and stderr: their descriptors never block once the stream has been opened.
    if (fd === 1 || fd === 2) process.once('exit', () => writeNow(fd, rest()));
  }
}

const writeNow = (fd: number, text: string): boolean => {
  const bytes = Buffer.from(text);
  try {
    for (let offset = 0; offset < bytes.length; ) offset += writeSync(fd, bytes, offset);
    return true;
  } catch {
    return false;
  }
};
