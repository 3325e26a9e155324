// The time of now for all that is shown relative to it: one timer for the whole page.
import { useSyncExternalStore } from 'react';

const TICK_MS = 1000;

let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

const tick = (): void => {
  now = Date.now();
  for (const listener of listeners) listener();
};

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  if (timer === undefined) {
    // Nobody has looked for a while: the time of then is not the time of now.
    now = Date.now();
    timer = setInterval(tick, TICK_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
};

/** `select` makes of the time what is shown: a component renders again only when that has changed. */
export const useNow = <T extends string | number | boolean>(select: (now: number) => T): T =>
  useSyncExternalStore(subscribe, () => select(now));
