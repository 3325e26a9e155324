// A rotating log file: JSON lines are appended, and a full file becomes FILE.1, FILE.2 and so on; the oldest is deleted. Rotation loses no
// line, and several processes can share a file. A write failure is reported once and retried; a line with the number of missing lines marks
// the gap. Not based on rotating-file-stream 3.2, which stops at the first full disk, loses the last lines at exit, queues without a limit
// and rotates without a lock.
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type Clock, systemClock } from '../clock.ts';
import { takeLock } from '../files/file-lock.ts';
import { LineSink, type Outlet } from './line-sink.ts';

const LOG_FILE_BOUNDS = {
  FILE_BYTES: 10 * 1024 * 1024,
  /** Number of rotated log files, including the current file. */
  FILES: 5,
  /** Time until a failed write is retried, so that a full disk is not tried for every line. */
  RETRY_MS: 1000,
  /** Bytes searched backwards for the beginning of a last line cut off by a crash. */
  TORN_BYTES: 64 * 1024,
} as const;

interface LogFileOptions {
  readonly path: string;
  /** Called when writing the log file begins to fail, not for every line. */
  readonly onProblem: (reason: string) => void;
  /** Creates the log line that takes the place of lines that could not be written. */
  readonly droppedLine: (count: number) => string;
  readonly clock?: Pick<Clock, 'monotonic'>;
  readonly fileBytes?: number;
}

export interface LogFile {
  /** Writes one or more lines, including line ends. Never blocks on a reader, never throws. */
  write(lines: string): void;
  close(): void;
}

export const openLogFile = (options: LogFileOptions): LogFile => {
  const outlet = new RotatingFile(options);
  const sink = new LineSink(outlet, { droppedNotice: options.droppedLine });
  return {
    write: (lines) => sink.push(lines),
    close: () => outlet.close(),
  };
};

/** Writes synchronously, so that the last lines are in the file however the process ends. */
class RotatingFile implements Outlet {
  closed = false;
  readonly #path: string;
  readonly #fileBytes: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #onProblem: (reason: string) => void;
  #rest: () => string = () => '';
  #fd: number | null = null;
  /** Time of the last failure to write the log file. Null while writing works. */
  #failedAt: number | null = null;

  constructor({ path, onProblem, clock = systemClock, fileBytes = LOG_FILE_BOUNDS.FILE_BYTES }: LogFileOptions) {
    this.#path = path;
    this.#fileBytes = fileBytes;
    this.#clock = clock;
    this.#onProblem = onProblem;
    // Opened now, so that a wrong path is reported at start, not with the first line.
    this.#attempt(() => this.#open());
  }

  write(text: string, done: (worked: boolean) => void): void {
    const worked = this.#attempt(() => this.#append(Buffer.from(text)));
    queueMicrotask(() => done(worked));
  }

  onExit(rest: () => string): void {
    this.#rest = rest;
  }

  close(): void {
    const rest = this.#rest();
    if (rest !== '') this.#attempt(() => this.#append(Buffer.from(rest)));
    this.closed = true;
    this.#release();
  }

  #attempt(act: () => void): boolean {
    const now = this.#clock.monotonic();
    if (this.closed || (this.#failedAt !== null && now - this.#failedAt < LOG_FILE_BOUNDS.RETRY_MS)) return false;
    try {
      act();
      this.#failedAt = null;
      return true;
    } catch (error) {
      const isNew = this.#failedAt === null;
      this.#failedAt = now;
      this.#release();
      if (isNew) this.#onProblem(reasonOf(error));
      return false;
    }
  }

  #append(bytes: Buffer): void {
    const fd = this.#isFullFor(bytes) ? this.#rotate(bytes) : this.#open();
    const before = fstatSync(fd).size;
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(fd, bytes, written);
    } catch (error) {
      // The disk became full within a line: removes the partial text, unless another process wrote meanwhile.
      if (written > 0 && fstatSync(fd).size === before + written) ftruncateSync(fd, before);
      throw error;
    }
  }

  /** Opens the file at the path. Reopens it if it was moved or removed (by logrotate or a second client). */
  #open(): number {
    const there = statOf(this.#path);
    if (this.#fd !== null && there !== null && isSame(fstatSync(this.#fd), there)) return this.#fd;
    this.#release();
    // A pipe without a reader would block the whole process, and pipes cannot be rotated.
    if (there !== null && !there.isFile())
      throw new Error(there.isDirectory() ? 'the path is a folder' : 'not a regular file');
    this.#fd = openSync(this.#path, 'a+', 0o600);
    // Checks write access to the folder now instead of at the first rotation.
    accessSync(dirname(realPathOf(this.#path)), constants.W_OK);
    mendEnd(this.#fd);
    return this.#fd;
  }

  #isFullFor(bytes: Buffer): boolean {
    const { size } = fstatSync(this.#open());
    return size > 0 && size + bytes.length > this.#fileBytes;
  }

  /**
   * Rotates under a lock, because two processes that move the same files would overwrite one. A process without the lock keeps writing to
   * the current file.
   */
  #rotate(bytes: Buffer): number {
    // If the log file is a symbolic link, the link stays and its target is moved.
    const path = realPathOf(this.#path);
    const lock = takeLock(`${path}.lock`);
    if (lock === null) return this.#open();
    try {
      // Checks the size again, because another process may have rotated the log just before.
      if (this.#isFullFor(bytes)) {
        this.#release();
        for (let number = LOG_FILE_BOUNDS.FILES - 1; number > 0; number -= 1) {
          const from = number === 1 ? path : `${path}.${number - 1}`;
          if (statOf(from) !== null) renameSync(from, `${path}.${number}`);
        }
      }
      return this.#open();
    } finally {
      lock.release();
    }
  }

  #release(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}

/**
 * Ensures that the next write begins a line, however the last process ended: a partial JSON line is removed, because it is unreadable; any
 * other text is kept and terminated.
 */
const mendEnd = (fd: number): void => {
  const { size } = fstatSync(fd);
  const from = Math.max(0, size - LOG_FILE_BOUNDS.TORN_BYTES);
  const tail = Buffer.alloc(size - from);
  readSync(fd, tail, 0, tail.length, from);
  // The log file has grown: another process is writing and terminates its lines.
  if (tail.length === 0 || tail.at(-1) === LINE_END || fstatSync(fd).size !== size) return;
  const start = tail.lastIndexOf(LINE_END) + 1;
  const isKnown = start > 0 || from === 0;
  if (isKnown && isHalfOfJson(tail.toString('utf8', start))) ftruncateSync(fd, from + start);
  else writeSync(fd, '\n');
};

const LINE_END = 10;

const isHalfOfJson = (line: string): boolean => {
  if (!line.startsWith('{')) return false;
  try {
    JSON.parse(line);
    return false;
  } catch {
    return true;
  }
};

const statOf = (path: string): Stats | null => statSync(path, { throwIfNoEntry: false }) ?? null;

const realPathOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch (error) {
    // Another process is moving the log file at this moment.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return path;
    throw error;
  }
};

const isSame = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev;

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is exceeded',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'no such folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'the path is a folder',
};

const reasonOf = (error: unknown): string => {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return REASONS[code] ?? (code === '' ? message : code);
};
