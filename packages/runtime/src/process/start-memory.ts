// Gives back what a start has used and needs no more: text that was parsed, code that ran once, garbage that lived long enough to be
// old. A process at rest allocates too little for V8 to look for it by itself.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** After the first things that everybody does when it is ready, so that they are not kept waiting for it: it takes some tens of ms. */
const AFTER_READY_MS = 500;

type CollectGarbage = (options?: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;

/** Once, soon after the process is ready. Holds no process that would end. */
export const releaseStartMemory = (): void => {
  setTimeout(() => {
    // For this moment alone: flags that differ from those of its build make Node compile each of its own modules anew.
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as CollectGarbage;
    setFlagsFromString('--no-expose-gc');
    // That of Node 20 takes any option for a wish to collect the young generation alone.
    if (process.versions.node.startsWith('20.')) collect();
    else collect({ type: 'major', flavor: 'last-resort' });
  }, AFTER_READY_MS).unref();
};
