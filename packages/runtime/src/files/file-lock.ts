// A lock that is a file: held by one living process, and taken over at once when that process is gone.
// Safe against races: a lock appears whole (link), and is replaced (rename) only by the holder of a second lock,
// named after the very lock that is stale; who comes late to that finds another lock there and leaves it alone.
import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { randomToken } from '../secret.ts';

export interface FileLock {
  /** Says to other machines that share the folder that the holder lives. */
  touch(): void;
  release(): void;
}

/** A process that can be told from a later one with the same number. */
interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** Boot id and start time from /proc, or what ps says; empty where there is neither. */
  readonly started: string;
}

interface LockText extends ProcessIdentity {
  /** Names this one lock. */
  readonly nonce: string;
  /** `started` as servers wrote it before, in a lock of this machine: they had `pid` and `began` alone, and see ours by these two. */
  readonly began?: string;
}

/** How deep locks on locks may go: each level needs a process that was killed in the middle of a take-over. */
const MAX_DEPTH = 3;

/**
 * null: somebody living holds it. Throws where the folder cannot be used.
 * `foreignStaleAfterMs` is for a folder that several machines share: a lock of another one counts until nobody touched it for so long.
 * Without it the folder is of this machine alone, by whatever name that went when the lock was taken.
 */
export const takeLock = (path: string, foreignStaleAfterMs?: number, depth = 0): FileLock | null => {
  const own = { ...ownIdentity(), nonce: randomToken(12) };
  const text: LockText = foreignStaleAfterMs === undefined ? { ...own, began: own.started.replace('/', ' ') } : own;
  if (create(path, text)) return lockOf(path, text.nonce);
  const found = readLock(path);
  // Gone between the two looks: whoever released it did not mean us, but the next try may have it.
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

/** The number of the living process that holds the lock at `path`; null: nobody does. */
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
    const touchedAt = statSync(path).mtimeMs;
    return { text: parseLock(readFileSync(path, 'utf8')), touchedAt };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
};

/** A text that is none of ours names a process that cannot be: it counts as gone. */
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
    // Falls through: a torn or foreign file.
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
  // Processes of another machine or container cannot be seen from here.
  if (foreignStaleAfterMs !== undefined && text.host !== hostname()) {
    // Both times are of the file system and this machine's wall clock; the bound is wide enough for their difference.
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

/** Asked for once: where there is no /proc it takes a program to find out. */
let ownStart: string | undefined;

const ownIdentity = (): ProcessIdentity => {
  ownStart ??= startOf(process.pid) ?? '';
  return { host: hostname(), pid: process.pid, started: ownStart };
};

/** null: it cannot be told. */
const startOf = (pid: number): string | null => startByProc(pid) ?? startByPs(pid);

const startByProc = (pid: number): string | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the program's name in parentheses and may hold anything, so count from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    const startTicks = fields[19];
    if (state === undefined || startTicks === undefined) return null;
    // A zombie is only waiting for its parent to read its exit code: it holds nothing any more.
    if (state === 'Z' || state === 'X') return 'gone';
    return `${bootId()}/${startTicks}`;
  } catch {
    return null;
  }
};

/** Start times count from the boot; the id of the boot keeps them apart across one. */
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
