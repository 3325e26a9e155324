// How busy other programs keep the processor while checks run, read from /proc. Where there is no /proc (macOS, Windows) it is unknown.
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The kernel counts in these units on every Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/** Counters since the machine started, to be given to `takenByOthers` twice; null where they cannot be read. */
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
 * The share of all cores that other programs, and the host of a virtual machine, took between two readings: 0 to 1, or null if unknown.
 * Time that the kernel spends on interrupts belongs to no process and is left out.
 */
export function takenByOthers(before, after, cores = availableParallelism()) {
  if (before === null || after === null) return null;
  const ticks = ((after.atMs - before.atMs) / 1000) * TICKS_PER_SECOND * cores;
  if (ticks <= 0) return null;
  const others = after.usedTicks - before.usedTicks - (after.ownTicks - before.ownTicks);
  return Math.min(1, Math.max(0, others + after.stolenTicks - before.stolenTicks) / ticks);
}

/** How long `sample` takes on the machine that the budgets of the steps were measured on, while nothing else runs there. */
const SAMPLE_MS = 50;
/** The first ones are slower, before the code is compiled. */
const WARM_UPS = 3;
const SAMPLES = 9;

function sample() {
  const words = Array.from({ length: 60_000 }, (_, index) => `${(index * 7919) % 60_013}`).sort();
  return new Map(words.map((word, index) => [word, index])).size;
}

/**
 * The share of its usual speed that the processor lacks: 0 to 1. Another virtual machine on the same core makes a processor slower without a trace in
 * /proc/stat. Measured while nothing of ours runs, because our own programs would count, too.
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

/** What a process and its descendants have used, with those of them that have ended. */
function ticksOfTree(root) {
  const children = new Map();
  const used = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const fields = statOf(entry);
    if (fields === null) continue;
    const [, parent] = fields;
    // User and system time of the process itself, then of its children that have ended.
    used.set(
      Number(entry),
      fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0),
    );
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(entry)]);
  }
  const sum = (pid) => (children.get(pid) ?? []).reduce((total, child) => total + sum(child), used.get(pid) ?? 0);
  return sum(root);
}

/** The fields of /proc/PID/stat behind the name of the program, which may have spaces and brackets. Null: the process has ended. */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
