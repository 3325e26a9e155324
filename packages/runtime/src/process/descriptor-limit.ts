// Maximum file descriptors of this process, for files and sockets. Node raises the soft limit to the hard limit at start.
import { readFileSync } from 'node:fs';

/** File descriptor limit assumed if the system reports none. */
const UNKNOWN = 8192;
/** Maximum file descriptor limit used: no process of this product can serve more connections. */
const MOST = 1_048_576;

/** Returns the limit of open file descriptors. `limits` is the text of /proc/self/limits, or null if unavailable. */
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

/** Limit on macOS and other systems. Network information is excluded, because the report would resolve the names of all peers. */
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
