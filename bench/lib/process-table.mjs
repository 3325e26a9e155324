// Reads processor time and memory of a process and its descendants from the process table of Linux.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

// USER_HZ: the unit of the times in /proc/<pid>/stat, 100 on every Linux that Node.js runs on.
const TICKS_PER_SECOND = 100;

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program name is in parentheses, and can itself contain parentheses and spaces.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number);
    return { parent: Number(fields[1]), ticks: utime + stime + cutime + cstime };
  } catch {
    return null;
  }
}

/** Returns the pids of the process and all its running descendants. */
function familyOf(pid) {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = statOf(name)?.parent;
    if (parent === undefined) continue;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(Number(name));
  }
  const family = [pid];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return family;
}

/** Returns seconds of user and system time, including running children and ended children that were waited for. */
export function cpuSeconds(pid) {
  let ticks = 0;
  for (const member of familyOf(pid)) ticks += statOf(member)?.ticks ?? 0;
  return ticks / TICKS_PER_SECOND;
}

/** Returns the number of open sockets of the process, without its children. */
export const openSockets = (pid) =>
  readdirSync(`/proc/${pid}/fd`).filter((descriptor) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${descriptor}`).startsWith('socket:');
    } catch {
      return false;
    }
  }).length;

const kilobytes = (status, field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);

/** Returns the current and the peak resident memory in bytes, including children. */
export function residentBytes(pid) {
  const sum = { now: 0, peak: 0 };
  for (const member of familyOf(pid)) {
    let status = '';
    try {
      status = readFileSync(`/proc/${member}/status`, 'utf8');
    } catch {
      continue;
    }
    sum.now += kilobytes(status, 'VmRSS') * 1024;
    sum.peak += kilobytes(status, 'VmHWM') * 1024;
  }
  return sum;
}
