// Who holds a lock: a process that can be told from a later one with the same number.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** Boot id and start time from /proc; empty where there is none. */
  readonly started: string;
}

export type HolderVerdict = 'alive' | 'gone' | 'foreign';

export const ownIdentity = (): ProcessIdentity => ({
  host: hostname(),
  pid: process.pid,
  started: startOf(process.pid)?.started ?? '',
});

/** `foreign`: another machine or container, whose processes cannot be seen from here. */
export const judgeHolder = (holder: ProcessIdentity): HolderVerdict => {
  if (holder.host !== hostname()) return 'foreign';
  if (!exists(holder.pid)) return 'gone';
  const found = startOf(holder.pid);
  if (found === null || holder.started === '') return 'alive';
  // A zombie is only waiting for its parent to read its exit code: it holds nothing any more.
  return found.zombie || found.started !== holder.started ? 'gone' : 'alive';
};

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

const startOf = (pid: number): { started: string; zombie: boolean } | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the program's name in parentheses and may hold anything, so count from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    const startTicks = fields[19];
    if (state === undefined || startTicks === undefined) return null;
    return { started: `${bootId()}/${startTicks}`, zombie: state === 'Z' || state === 'X' };
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
