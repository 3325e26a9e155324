// What the browser knows and a page follows: the time of now, media queries, and where an element begins.
import { type RefObject, useCallback, useLayoutEffect, useState, useSyncExternalStore } from 'react';

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

/** One timer for the whole page. `select` makes of the time what is shown: a component renders again only when that has changed. */
export const useNow = <T extends string | number | boolean>(select: (now: number) => T): T =>
  useSyncExternalStore(subscribe, () => select(now));

/** One for each query: many rows of a list ask the same. */
const mediaQueries = new Map<string, MediaQueryList>();

const mediaOf = (query: string): MediaQueryList => {
  const media = mediaQueries.get(query) ?? matchMedia(query);
  mediaQueries.set(query, media);
  return media;
};

/** Whether the page is as a media query says, now and whenever that changes. */
export const useMedia = (query: string): boolean =>
  useSyncExternalStore(
    useCallback(
      (listener: () => void) => {
        const media = mediaOf(query);
        media.addEventListener('change', listener);
        return () => media.removeEventListener('change', listener);
      },
      [query],
    ),
    () => mediaOf(query).matches,
  );

/** Until `md:` of the classes begins. */
export const useIsNarrow = (): boolean => useMedia('(width < 48rem)');

/** How far down the page an element begins; what stands above it comes and goes. */
export const usePageTop = (element: RefObject<HTMLElement | null>): number => {
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => {
      if (element.current !== null) setTop(Math.round(element.current.getBoundingClientRect().top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [element]);
  return top;
};
