// What a test can tell of other processes, from the process table.
import { readdirSync, readFileSync } from 'node:fs';

/** The pids of all that `pid` started, read from the process table. */
export const descendantsOf = (pid: number): number[] => {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It ended meanwhile.
    }
  }
  const found = [pid];
  for (const member of found) {
    for (const [child, parent] of parents) if (parent === member) found.push(child);
  }
  return found.slice(1);
};
