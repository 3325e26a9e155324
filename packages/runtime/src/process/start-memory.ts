// Frees memory used only during the start: parsed text, code that ran once, garbage in the old generation. An idle process allocates too
// little to trigger a collection.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Delay after readiness, so that the first requests do not wait for the collection of some tens of ms. */
const AFTER_READY_MS = 500;
/** Time until a second collection. V8 shrinks the young generation only if the process has allocated little for some seconds. */
const AT_REST_MS = 20_000;
/** Share of a processor above which a process counts as busy. A busy process needs its young generation, and must not pause. */
const BUSY_SHARE = 0.1;

type CollectGarbage = (options?: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;

interface Rest {
  readonly atRestMs?: number;
  readonly busyShare?: number;
  /** Called before the first collection, which drops compiled functions of the start. */
  readonly beforeFirst?: () => void;
}

/**
 * Runs a garbage collection soon after the process is ready, and another one if the process is idle then. Does not keep the process alive.
 */
export const releaseStartMemory = ({ atRestMs = AT_REST_MS, busyShare = BUSY_SHARE, beforeFirst }: Rest = {}): void => {
  setTimeout(() => {
    beforeFirst?.();
    collect();
    const before = process.cpuUsage();
    setTimeout(() => {
      const { user, system } = process.cpuUsage(before);
      if (user + system <= busyShare * atRestMs * 1000) collect();
    }, atRestMs).unref();
  }, AFTER_READY_MS).unref();
};

const collect = (): void => {
  // Enabled only for a moment, because with flags different from its build Node would recompile each of its modules.
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as CollectGarbage;
  setFlagsFromString('--no-expose-gc');
  // In Node.js 20, any option of the garbage collector selects a collection of the young generation only.
  if (process.versions.node.startsWith('20.')) gc();
  else gc({ type: 'major', flavor: 'last-resort' });
};
