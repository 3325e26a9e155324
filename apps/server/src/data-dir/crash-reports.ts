// <data_dir>/crashes: what is kept of each unexpected end of a part, for whoever looks into it later. No payloads, secrets masked.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { maskFields } from '@tunnel/runtime';

const FOLDER = 'crashes';

export const CRASH_BOUNDS = {
  /** Older reports are removed: a part that cannot live must not fill the disk. */
  KEPT: 20,
  /** Of a stack, a message, or what a dying program printed. */
  TEXT_CHARS: 16_384,
} as const;

export interface Crash {
  readonly part: string;
  readonly version: string;
  readonly uptimeMs: number;
  /** null: there is none, as after a kill. */
  readonly error: CrashError | null;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  /** The last that is known of how busy it was. */
  readonly counters: Readonly<Record<string, number>>;
  /** What it printed at the end that was no log line, as the runtime's own words about memory. */
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

/** Of this very process. */
export const processCounters = (): Record<string, number> => {
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss_bytes: rss, heap_bytes: heapUsed, external_bytes: external };
};

/** The file, or null when it cannot be written: the end of a part must not end whoever notes it. */
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

/** Two within a millisecond: the later one gets the next free name. */
const writeUnder = (folder: string, text: string, now: number): string => {
  for (let at = now; ; at += 1) {
    const file = join(folder, `${new Date(at).toISOString().replaceAll(':', '-')}.json`);
    try {
      writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
      return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      // A full disk has room for a name, and would let empty reports push out those that say something.
      rmSync(file, { force: true });
      throw error;
    }
  }
};

/** The oldest first: their names are times. */
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
