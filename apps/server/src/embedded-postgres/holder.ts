// Who holds the embedded database: one process at a time, from before the cluster is made until after it is stopped.
// Without it, of two servers that start together on one data directory, each would take the other's database for an orphan.
import { execFileSync } from 'node:child_process';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Holder {
  readonly pid: number;
  /** When that process began: after a reboot, or in a new container, its number belongs to another one. */
  readonly began: string;
}

const fileIn = (root: string): string => join(root, 'holder.json');

/** The pid of the process that holds it; undefined when it is ours now. */
export const claim = (root: string): number | undefined => {
  const file = fileIn(root);
  const aside = `${file}.${process.pid}.tmp`;
  writeFileSync(aside, JSON.stringify({ pid: process.pid, began: beganOf(process.pid) }), { mode: 0o600 });
  try {
    for (;;) {
      if (tryLink(aside, file)) return undefined;
      const found = readHolder(file);
      if (found !== undefined && isLiving(found)) return found.pid;
      removeStale(file);
    }
  } finally {
    rmSync(aside, { force: true });
  }
};

export const release = (root: string): void => {
  if (readHolder(fileIn(root))?.pid === process.pid) rmSync(fileIn(root), { force: true });
};

/** Moved away first: whoever moves it can look at what it was, and of two who come together only one gets it. */
const removeStale = (file: string): void => {
  const taken = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, taken);
  } catch {
    return;
  }
  const holder = readHolder(taken);
  if (holder !== undefined && isLiving(holder)) tryLink(taken, file);
  rmSync(taken, { force: true });
};

const tryLink = (from: string, to: string): boolean => {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
};

const readHolder = (file: string): Holder | undefined => {
  try {
    const { pid, began } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    return typeof pid === 'number' && typeof began === 'string' ? { pid, began } : undefined;
  } catch {
    return undefined;
  }
};

const isLiving = ({ pid, began }: Holder): boolean => beganOf(pid) === began;

const beganOf = (pid: number): string | undefined => beganByProc(pid) ?? beganByPs(pid);

const beganByProc = (pid: number): string | undefined => {
  try {
    // The name may hold spaces and brackets; the 22nd field is the 20th after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\)\s/s, '')
      .split(' ');
    // A zombie only waits for its parent to read its exit code: it holds nothing any more.
    if (fields[0] === 'Z') return 'gone';
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${fields[19]}`;
  } catch {
    return undefined;
  }
};

const beganByPs = (pid: number): string | undefined => {
  try {
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env }).trim() || undefined;
  } catch {
    return undefined;
  }
};
