// Measures how busy other programs keep the processor while checks run, from /proc. Unknown on systems without /proc (macOS, Windows).
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Unit of the kernel's counters, the same on every Linux supported by Node.js. */
const TICKS_PER_SECOND = 100;

/**
 * Reads the processor counters since the machine's start. Two readings are compared by `takenByOthers`. Returns null if the counters
 * cannot be read.
 */
export function readProcessorUse(pid = process.pid) {
  try {
    const [user, nice, system, , , , , steal] = readFileSync('/proc/stat', 'utf8')
      .split('\n', 1)[0]
      .split(/\s+/)
      .slice(1)
      .map(Number);
    return { atMs: performance.now(), usedTicks: user + nice + system, stolenTicks: steal, ownTicks: ticksOfTree(pid) };
  } catch {
    return null;
  }
}

/**
 * Returns the share of all cores used by other programs, and by the host of a virtual machine, between two readings: from 0 to 1, or null
 * if unknown. Time spent by the kernel on interrupts belongs to no process and is not counted.
 */
export function takenByOthers(before, after, cores = availableParallelism()) {
  if (before === null || after === null) return null;
  const ticks = ((after.atMs - before.atMs) / 1000) * TICKS_PER_SECOND * cores;
  if (ticks <= 0) return null;
  const others = after.usedTicks - before.usedTicks - (after.ownTicks - before.ownTicks);
  return Math.min(1, Math.max(0, others + after.stolenTicks - before.stolenTicks) / ticks);
}

/** Duration of `sample` on the idle machine on which the budgets of the steps were measured. */
const SAMPLE_MS = 50;
/** Number of discarded samples. The first samples are slower, because the code is not compiled yet. */
const WARM_UPS = 3;
const SAMPLES = 9;

function sample() {
  const words = Array.from({ length: 60_000 }, (_, index) => `${(index * 7919) % 60_013}`).sort();
  return new Map(words.map((word, index) => [word, index])).size;
}

/**
 * Returns the share of its usual speed that the processor has lost, from 0 to 1. A different virtual machine on the same core slows the
 * processor without a trace in /proc/stat. Call only while none of the checks' programs run, because they would be measured too.
 */
export function lostSpeed(usualMs = SAMPLE_MS, now = () => performance.now(), work = sample) {
  const took = Array.from({ length: WARM_UPS + SAMPLES }, () => {
    const beginMs = now();
    work();
    return now() - beginMs;
  });
  const sorted = took.slice(WARM_UPS).sort((one, other) => one - other);
  return Math.max(0, 1 - usualMs / sorted[Math.floor(SAMPLES / 2)]);
}

/** Returns the processor time of a process and its descendants, including descendants that have ended. */
function ticksOfTree(root) {
  const children = new Map();
  const used = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const fields = statOf(entry);
    if (fields === null) continue;
    const [, parent] = fields;
    // User and system time of the process, and of its child processes that have ended.
    used.set(
      Number(entry),
      fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0),
    );
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(entry)]);
  }
  const sum = (pid) => (children.get(pid) ?? []).reduce((total, child) => total + sum(child), used.get(pid) ?? 0);
  return sum(root);
}

/**
 * Returns the fields of /proc/PID/stat after the program name, which may contain spaces and parentheses. Returns null if the process has
 * ended.
 */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
