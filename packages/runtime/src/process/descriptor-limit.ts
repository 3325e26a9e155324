// How many descriptors this process may hold: files and sockets together. Node raises its own limit to the highest it may have at its start.
import { readFileSync } from 'node:fs';

/** Where the system does not say, or has no such limit. */
const UNKNOWN = 8192;
/** More than this many connections no process of ours can serve. */
const MOST = 1_048_576;

/** `limits`: the text of /proc/self/limits; null: there is none. */
export const descriptorLimit = (limits = readProcLimits()): number => {
  const soft = limits === null ? reportedLimit() : /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  if (soft === 'unlimited') return MOST;
  const limit = Number(soft);
  return Number.isInteger(limit) && limit > 0 ? Math.min(limit, MOST) : UNKNOWN;
};

const readProcLimits = (): string | null => {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return null;
  }
};

/** macOS and others. A report would look up the names of all peers otherwise, which takes its time. */
const reportedLimit = (): string | undefined => {
  const report: typeof process.report & { excludeNetwork?: boolean } = process.report;
  const { excludeNetwork = false } = report;
  report.excludeNetwork = true;
  try {
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: string | number } } };
    const soft = userLimits?.open_files?.soft;
    return soft === undefined ? undefined : String(soft);
  } finally {
    report.excludeNetwork = excludeNetwork;
  }
};
