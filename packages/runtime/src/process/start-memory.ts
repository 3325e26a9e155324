// Frees memory used only during the start: parsed text, code that ran once, garbage in the old generation. An idle process allocates too
// little to trigger a collection.
import nodeModule from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Delay after readiness, so that the first requests do not wait for the collection of some tens of ms. */
const AFTER_READY_MS = 500;

type CollectGarbage = (options?: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;

/**
 * Runs a garbage collection once, soon after the process is ready. Also writes the compile cache, if there is one, because a process that
 * is killed cannot write the cache at its end. Does not keep the process alive.
 */
export const releaseStartMemory = (): void => {
  setTimeout(() => {
    (nodeModule as { flushCompileCache?(): void }).flushCompileCache?.();
    // Enabled only for a moment, because with flags different from its build Node would recompile each of its modules.
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as CollectGarbage;
    setFlagsFromString('--no-expose-gc');
    // In Node.js 20, any option of the garbage collector selects a collection of the young generation only.
    if (process.versions.node.startsWith('20.')) collect();
    else collect({ type: 'major', flavor: 'last-resort' });
  }, AFTER_READY_MS).unref();
};
