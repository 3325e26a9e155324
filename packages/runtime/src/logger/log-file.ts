// A log file of bounded size: lines go to its end, and at its bound it becomes FILE.1, that one FILE.2, until the oldest goes. No line is
// lost by that. A file that cannot be written is told of once, and tried again; how many lines it is short of stands where they are missing.
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type Clock, systemClock } from '../clock.ts';
import { LineSink, type Outlet } from './line-sink.ts';

const LOG_FILE_BOUNDS = {
  FILE_BYTES: 10 * 1024 * 1024,
  /** With the one that is written. */
  FILES: 5,
  /** A file that could not be written is tried again no sooner: a full disk is asked once a second, not once a line. */
  RETRY_MS: 1000,
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
    let fd = this.#open();
    const { size } = fstatSync(fd);
    if (size > 0 && size + bytes.length > this.#fileBytes) fd = this.#rotate();
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
    if (there !== null && !there.isFile()) throw new Error(there.isDirectory() ? 'it is a folder' : 'it is no file');
    // Found out now, and not when the first file is full.
    accessSync(dirname(this.#path), constants.W_OK);
    this.#fd = openSync(this.#path, 'a', 0o600);
    return this.#fd;
  }

  #rotate(): number {
    this.#release();
    for (let number = LOG_FILE_BOUNDS.FILES - 1; number > 0; number -= 1) {
      const from = number === 1 ? this.#path : `${this.#path}.${number - 1}`;
      if (statOf(from) !== null) renameSync(from, `${this.#path}.${number}`);
    }
    return this.#open();
  }

  #release(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}

const statOf = (path: string): Stats | null => statSync(path, { throwIfNoEntry: false }) ?? null;

const isSame = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev;

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'no such folder',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'it is a folder',
};

const reasonOf = (error: unknown): string => {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return REASONS[code] ?? (code === '' ? message : code);
};
