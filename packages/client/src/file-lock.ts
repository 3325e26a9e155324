// A lock that is a file: held by one living process, and taken over at once when that process is gone.
// Safe against races: a lock appears whole (link), and is replaced (rename) only by the holder of a second lock,
// named after the very lock that is stale; who comes late to that finds another lock there and leaves it alone.
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { randomToken } from '@tunnel/runtime';
import { judgeHolder, ownIdentity, type ProcessIdentity } from './process-identity.ts';

export interface FileLock {
  /** Says to other machines that share the folder that the holder lives. */
  touch(): void;
  release(): void;
}

interface LockText extends ProcessIdentity {
  /** Names this one lock. */
  readonly nonce: string;
}

/** How deep locks on locks may go: each level needs a process that was killed in the middle of a take-over. */
const MAX_DEPTH = 3;

/** null: somebody living holds it. Throws where the folder cannot be used. */
export const takeLock = (path: string, foreignStaleAfterMs: number, depth = 0): FileLock | null => {
  const text: LockText = { ...ownIdentity(), nonce: randomToken(12) };
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

/** Whether a living process holds the lock at `path`. */
export const isLockHeld = (path: string, foreignStaleAfterMs: number): boolean => {
  const found = readLock(path);
  return found !== null && !isStale(found, foreignStaleAfterMs);
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

const writeAside = (path: string, text: LockText, place: (aside: string) => void): void => {
  const aside = `${path}.${text.nonce}.new`;
  try {
    writeFileSync(aside, JSON.stringify(text), { mode: 0o600, flag: 'wx' });
    place(aside);
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
    const { host, pid, started, nonce } = value;
    if (typeof host === 'string' && Number.isSafeInteger(pid) && typeof started === 'string' && isNonce(nonce)) {
      return { host, pid: pid as number, started, nonce };
    }
  } catch {
    // Falls through: a torn or foreign file.
  }
  return { ...ownIdentity(), pid: 0, started: 'unreadable', nonce: 'unreadable' };
};

const isNonce = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{1,64}$/.test(value);

const isStale = (found: FoundLock, foreignStaleAfterMs: number): boolean => {
  if (found.text.pid <= 0) return true;
  const verdict = judgeHolder(found.text);
  // Both times are of the file system and this machine's wall clock; the bound is wide enough for their difference.
  return verdict === 'foreign' ? Date.now() - found.touchedAt > foreignStaleAfterMs : verdict === 'gone';
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
