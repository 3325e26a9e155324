// What the fields of a request say about who asks, and how: claims, until it is known whose they are.
import type { HeaderField } from './header-field.ts';
import { eachListItem } from './list-items.ts';

interface Fields {
  readonly headers: readonly HeaderField[];
}

/** X-Forwarded-For, several fields as one list; empty: none. */
export const forwardedForOf = ({ headers }: Fields): string => {
  let chain = '';
  for (const field of headers) {
    if (field.role !== 'forwarded-for') continue;
    const { value } = field;
    if (value !== '') chain += chain === '' ? value : `, ${value}`;
  }
  return chain;
};

/** X-Forwarded-Proto; of a list the last, which the nearest proxy has written. null: none, or something else. */
export const forwardedProtoOf = ({ headers }: Fields): 'http' | 'https' | null => {
  let last = '';
  for (const field of headers) {
    if (field.role !== 'forwarded' || field.lower !== 'x-forwarded-proto') continue;
    eachListItem(field.value.toLowerCase(), (item) => {
      last = item;
    });
  }
  return last === 'http' || last === 'https' ? last : null;
};
