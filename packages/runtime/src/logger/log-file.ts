// A log file of bounded size: lines of JSON go to its end, and at its bound it becomes FILE.1, that one FILE.2, until the oldest goes. No
// line is lost by that, and several processes may write one file. A file that cannot be written is told of once, and tried again; how many lines it is short of stands where they are missing.
// Not by a library: rotating-file-stream 3.2 ends at the first full disk, loses the last lines of a process that exits, queues without a bound and rotates without a lock.
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
  /** With the one that is written. */
  FILES: 5,
  /** A file that could not be written is tried again no sooner: a full disk is asked once a second, not once a line. */
  RETRY_MS: 1000,
  /** How far back the beginning of a last line is looked for that a crash cut off. */
  TORN_BYTES: 64 * 1024,
} as const;

interface LogFileOptions {
  readonly path: string;
  /** When writing begins to fail, not for each line. */
  readonly onProblem: (reason: string) => void;
  /** The line in place of those that could not be written. */
  readonly droppedLine: (count: number) => string;
  readonly clock?: Pick<Clock, 'monotonic'>;
  readonly fileBytes?: number;
}

export interface LogFile {
  /** One line or more, each with its end. Never blocks on a reader, never throws. */
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

/** The file is written at once, as standard output is when it is a file: what was said last is there however the process ends. */
class RotatingFile implements Outlet {
  closed = false;
  readonly #path: string;
  readonly #fileBytes: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #onProblem: (reason: string) => void;
  #rest: () => string = () => '';
  #fd: number | null = null;
  /** When it last failed; null: it works. */
  #failedAt: number | null = null;

  constructor({ path, onProblem, clock = systemClock, fileBytes = LOG_FILE_BOUNDS.FILE_BYTES }: LogFileOptions) {
    this.#path = path;
    this.#fileBytes = fileBytes;
    this.#clock = clock;
    this.#onProblem = onProblem;
    // So that a wrong path is told of at the start, not with the first line.
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
      // The disk got full in the middle of a line: none of these is there, rather than half of one. Unless somebody else wrote meanwhile.
      if (written > 0 && fstatSync(fd).size === before + written) ftruncateSync(fd, before);
      throw error;
    }
  }

  /** The file of that name: another one, when somebody moved or removed the one that was open (logrotate, a second client). */
  #open(): number {
    const there = statOf(this.#path);
    if (this.#fd !== null && there !== null && isSame(fstatSync(this.#fd), there)) return this.#fd;
    this.#release();
    // A pipe without a reader would hold up the whole process, and none of them can be rotated.
    if (there !== null && !there.isFile())
      throw new Error(there.isDirectory() ? 'the path is a folder' : 'not a regular file');
    this.#fd = openSync(this.#path, 'a+', 0o600);
    // Found out now, and not when the first file is full.
    accessSync(dirname(realPathOf(this.#path)), constants.W_OK);
    mendEnd(this.#fd);
    return this.#fd;
  }

  #isFullFor(bytes: Buffer): boolean {
    const { size } = fstatSync(this.#open());
    return size > 0 && size + bytes.length > this.#fileBytes;
  }

  /** By one process at a time: two that move the same files overwrite one. Who comes second writes on where it is until they are moved. */
  #rotate(bytes: Buffer): number {
    // A link stays one: what it leads to is moved.
    const path = realPathOf(this.#path);
    const lock = takeLock(`${path}.lock`);
    if (lock === null) return this.#open();
    try {
      // Another one may have moved them just before.
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
 * What is written next begins a line, however the last process ended: half a line of ours goes, since nobody can read it; anything else
 * stays, and is ended.
 */
const mendEnd = (fd: number): void => {
  const { size } = fstatSync(fd);
  const from = Math.max(0, size - LOG_FILE_BOUNDS.TORN_BYTES);
  const tail = Buffer.alloc(size - from);
  readSync(fd, tail, 0, tail.length, from);
  // Grown meanwhile: somebody else writes, and ends his lines himself.
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
    // Moved this very moment, by another writer.
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
