// Whether the page is as a media query says, now and whenever that changes.
import { useSyncExternalStore } from 'react';

export const useMedia = (query: string): boolean =>
  useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener('change', listener);
      return () => media.removeEventListener('change', listener);
    },
    () => matchMedia(query).matches,
  );

/** As `sm:` of the classes begins. */
export const useIsNarrow = (): boolean => useMedia('(width < 40rem)');
