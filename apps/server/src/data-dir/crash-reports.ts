// Crash reports in <data_dir>/crashes: a file for each unexpected exit of a part, for later analysis. Reports contain no payloads, and
// secrets are masked.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { maskFields } from '@tunnel/runtime';

const FOLDER = 'crashes';

export const CRASH_BOUNDS = {
  /** Number of crash reports to keep. Older reports are removed, so that a part that crashes repeatedly cannot fill the disk. */
  KEPT: 20,
  /** Maximum characters of a stack trace, of an error message, and of the last output of a crashed process. */
  TEXT_CHARS: 16_384,
} as const;

export interface Crash {
  readonly part: string;
  readonly version: string;
  readonly uptimeMs: number;
  /** Error that caused the exit. Null if unknown, for example after a kill. */
  readonly error: CrashError | null;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  /** Latest known load of the part, such as its memory use. */
  readonly counters: Readonly<Record<string, number>>;
  /** Last output of the part other than log lines, such as the runtime's message about exhausted memory. */
  readonly output?: string;
}

export interface CrashError {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
}

export const crashErrorOf = (error: unknown): CrashError =>
  error instanceof Error
    ? { type: error.name, message: error.message, stack: error.stack ?? '' }
    : { type: typeof error, message: String(error), stack: '' };

/** Memory use of the current process. */
export const processCounters = (): Record<string, number> => {
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss_bytes: rss, heap_bytes: heapUsed, external_bytes: external };
};

/**
 * Writes a crash report and returns its path. Returns null if the report cannot be written, because a failure must not stop the process
 * that reports the crash.
 */
export const writeCrash = (dataDir: string, crash: Crash, now: number): string | null => {
  try {
    const folder = join(dataDir, FOLDER);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const file = writeUnder(folder, textOf(crash, now), now);
    for (const name of reportsIn(folder).slice(0, -CRASH_BOUNDS.KEPT)) rmSync(join(folder, name), { force: true });
    return file;
  } catch {
    return null;
  }
};

/** Writes the report to a file named after the time. If a report of the same millisecond exists, the next free millisecond is used. */
const writeUnder = (folder: string, text: string, now: number): string => {
  for (let at = now; ; at += 1) {
    const file = join(folder, `${new Date(at).toISOString().replaceAll(':', '-')}.json`);
    try {
      writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
      return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      // Removes the empty file. A full disk still has room for file names, and empty reports would displace complete reports.
      rmSync(file, { force: true });
      throw error;
    }
  }
};

/** Returns the file names of the reports, oldest first. The names are times, so sorting by name sorts by age. */
const reportsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort();

const textOf = ({ part, version, uptimeMs, error, exitCode, signal, counters, output }: Crash, now: number): string => {
  const short = (text: string): string => text.slice(0, CRASH_BOUNDS.TEXT_CHARS);
  const masked = maskFields({
    time: new Date(now).toISOString(),
    part,
    version,
    uptime_secs: uptimeMs / 1000,
    exit_code: exitCode ?? null,
    signal: signal ?? null,
    error: error && { type: error.type, message: short(error.message), stack: short(error.stack) },
    counters,
    output: output === undefined ? null : output.slice(-CRASH_BOUNDS.TEXT_CHARS),
  });
  return `${JSON.stringify(masked, null, 2)}\n`;
};
