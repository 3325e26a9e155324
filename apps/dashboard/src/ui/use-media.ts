// Whether the page is as a media query says, now and whenever that changes.
import { useCallback, useSyncExternalStore } from 'react';

/** One for each query: many rows of a list ask the same. */
const asked = new Map<string, MediaQueryList>();

const mediaOf = (query: string): MediaQueryList => {
  const media = asked.get(query) ?? matchMedia(query);
  asked.set(query, media);
  return media;
};

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
