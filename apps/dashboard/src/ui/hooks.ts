// Hooks for browser state: the current time, media queries, and the position of an element on the page.
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
    // The timer was stopped because no component needed the time, so the stored time is outdated.
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

/**
 * Returns a value derived from the current time, updated every second. `select` computes the displayed value; a component renders again
 * only when the value changes. All components share a single timer.
 */
export const useNow = <T extends string | number | boolean>(select: (now: number) => T): T =>
  useSyncExternalStore(subscribe, () => select(now));

/** Cache of MediaQueryList objects, because many rows of a list use the same query. */
const mediaQueries = new Map<string, MediaQueryList>();

const mediaOf = (query: string): MediaQueryList => {
  const media = mediaQueries.get(query) ?? matchMedia(query);
  mediaQueries.set(query, media);
  return media;
};

/** Returns whether the page matches a media query, and updates on changes. */
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

/** Returns whether the page is narrower than the `md:` breakpoint of the utility classes. */
export const useIsNarrow = (): boolean => useMedia('(width < 48rem)');

/**
 * Returns the distance from the top of the page to an element in px. Measured again when the page's content changes size, because
 * elements above can appear and disappear.
 */
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
