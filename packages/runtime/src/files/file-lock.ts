// A lock file held by a living process, and taken over at once when that process is gone. Safe against races: a lock is created atomically
// (link, where the file system has links) and replaced (rename) only by the holder of a second lock, named after the stale lock. A process that is too late finds another
// lock and does not touch it.
import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { randomToken } from '../secret.ts';

export interface FileLock {
  /** Signals to other machines that share the folder that the holder is alive. */
  touch(): void;
  release(): void;
}

/** Identifies a process, even if its pid is reused later. */
interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** Boot id and start time from /proc, or the start time from ps. Empty if neither is available. */
  readonly started: string;
}

interface LockText extends ProcessIdentity {
  /** Unique id of the file lock. */
  readonly nonce: string;
  /**
   * `started` in the format of older servers, which wrote only `pid` and `began` and read these two fields. Only in locks local to this
   * machine.
   */
  readonly began?: string;
}

/** Maximum depth of locks on locks. Each level needs a process killed during a takeover. */
const MAX_DEPTH = 3;

/**
 * Returns null if a living process holds the lock. Throws if the folder cannot be used. `foreignStaleAfterMs` is for a folder shared by
 * several machines: a lock of another machine is stale if not touched for this time. Without it, the folder is local, even if the machine's
 * host name has changed.
 */
export const takeLock = (path: string, foreignStaleAfterMs?: number, depth = 0): FileLock | null => {
  const own = { ...ownIdentity(), nonce: randomToken(12) };
  const text: LockText = foreignStaleAfterMs === undefined ? { ...own, began: own.started.replace('/', ' ') } : own;
  if (create(path, text)) return lockOf(path, text.nonce);
  const found = readLock(path);
  // The lock was released between the two checks, so one more attempt may succeed.
  if (found === null) return create(path, text) ? lockOf(path, text.nonce) : null;
  if (depth >= MAX_DEPTH || !isStale(found, foreignStaleAfterMs)) return null;
  const takeOver = takeLock(`${path}.${found.text.nonce}`, foreignStaleAfterMs, depth + 1);
  if (takeOver === null) return null;
  try {
    if (readLock(path)?.text.nonce !== found.text.nonce) return null;
    writeAside(path, text, (aside) => renameSync(aside, path));
    return lockOf(path, text.nonce);
  } finally {
    takeOver.release();
  }
};

/** Returns the pid of the living process that holds the lock, or null. */
export const lockHolder = (path: string, foreignStaleAfterMs?: number): number | null => {
  const found = readLock(path);
  return found === null || isStale(found, foreignStaleAfterMs) ? null : found.text.pid;
};

export const isProcessAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

const create = (path: string, text: LockText): boolean => {
  try {
    writeAside(path, text, (aside) => linkSync(aside, path));
    return true;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (NO_LINKS.has(code)) return createInPlace(path, text);
    throw error;
  }
};

/** Errors of a file system without hard links, such as exFAT on a USB disk. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** Creates a lock without a link. For the moment until its text is written, the lock looks stale to other processes. */
const createInPlace = (path: string, text: LockText): boolean => {
  try {
    writeFileSync(path, JSON.stringify(text), { mode: 0o600, flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
};

const writeAside = (path: string, text: LockText, moveIn: (aside: string) => void): void => {
  const aside = `${path}.${text.nonce}.new`;
  try {
    writeFileSync(aside, JSON.stringify(text), { mode: 0o600, flag: 'wx' });
    moveIn(aside);
  } finally {
    rmSync(aside, { force: true });
  }
};

interface FoundLock {
  readonly text: LockText;
  readonly touchedAt: number;
}

const readLock = (path: string): FoundLock | null => {
  try {
    const found = statSync(path);
    if (!found.isFile()) throw new Error(`${path} is not a regular file`);
    const touchedAt = found.mtimeMs;
    return { text: parseLock(readFileSync(path, 'utf8')), touchedAt };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
};

/** Parses a lock. Invalid text yields an impossible process, which counts as gone. */
const parseLock = (json: string): LockText => {
  try {
    const value = JSON.parse(json) as Partial<LockText>;
    const { host, pid, started, nonce, began } = value;
    if (nonce === undefined && Number.isSafeInteger(pid) && typeof began === 'string') {
      return earlierLock(pid as number, began);
    }
    if (typeof host === 'string' && Number.isSafeInteger(pid) && typeof started === 'string' && isNonce(nonce)) {
      return { host, pid: pid as number, started, nonce };
    }
  } catch {
    // A lock file with incomplete or foreign content counts as invalid.
  }
  return { ...ownIdentity(), pid: 0, started: 'unreadable', nonce: 'unreadable' };
};

const BEGAN = /^([\da-f-]{36}) (\d+)$/;

const earlierLock = (pid: number, began: string): LockText => ({
  host: hostname(),
  pid,
  started: began.replace(BEGAN, '$1/$2'),
  nonce: `${pid}-${began.replaceAll(/\W/g, '-')}`.slice(0, 64),
});

const isNonce = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{1,64}$/.test(value);

const isStale = ({ text, touchedAt }: FoundLock, foreignStaleAfterMs: number | undefined): boolean => {
  if (text.pid <= 0) return true;
  // Whether a process of another machine or container still runs cannot be seen here, so only the lock's age counts.
  if (foreignStaleAfterMs !== undefined && text.host !== hostname()) {
    // Compares file system time with the local wall clock. The limit is wide enough for their difference.
    return Date.now() - touchedAt > foreignStaleAfterMs;
  }
  if (!isProcessAlive(text.pid)) return true;
  const started = startOf(text.pid);
  return started !== null && text.started !== '' && started !== text.started;
};

const lockOf = (path: string, nonce: string): FileLock => {
  const isOurs = (): boolean => readLock(path)?.text.nonce === nonce;
  return {
    touch: () => {
      if (isOurs()) utimesSync(path, new Date(), new Date());
    },
    release: () => {
      if (isOurs()) rmSync(path, { force: true });
    },
  };
};

/** This process's start time, determined once, because without /proc it takes a child process. */
let ownStart: string | undefined;

const ownIdentity = (): ProcessIdentity => {
  ownStart ??= startOf(process.pid) ?? '';
  return { host: hostname(), pid: process.pid, started: ownStart };
};

/** Returns the start time of a process, or null if it is unknown. */
const startOf = (pid: number): string | null => startByProc(pid) ?? startByPs(pid);

const startByProc = (pid: number): string | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the program's name in parentheses and may contain anything, so fields are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    const startTicks = fields[19];
    if (state === undefined || startTicks === undefined) return null;
    // A zombie only waits for its parent to read the exit code and holds nothing.
    if (state === 'Z' || state === 'X') return 'gone';
    return `${bootId()}/${startTicks}`;
  } catch {
    return null;
  }
};

/** Start times count from boot, so the boot id keeps different boots apart. */
const bootId = (): string => {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return '';
  }
};

const startByPs = (pid: number): string | null => {
  try {
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env }).trim() || null;
  } catch {
    return null;
  }
};
