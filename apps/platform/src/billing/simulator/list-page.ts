// A list as the processor answers it: newest first, a page at a time.
import { noSuch } from './sim-error.ts';
import type { SimList } from './sim-objects.ts';

export interface PageWanted {
  readonly limit: number;
  readonly starting_after?: string | undefined;
}

/** `rows` come oldest first. */
export const listPage = <T extends { readonly id: string }>(
  url: string,
  rows: readonly T[],
  { limit, starting_after }: PageWanted,
): SimList<T> => {
  const newest = [...rows].reverse();
  const seen = starting_after === undefined ? -1 : newest.findIndex(({ id }) => id === starting_after);
  if (starting_after !== undefined && seen === -1) throw noSuch('object', starting_after, 'starting_after');
  const data = newest.slice(seen + 1, seen + 1 + limit);
  return { object: 'list', url, has_more: seen + 1 + limit < newest.length, data };
};
