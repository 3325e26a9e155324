// A stored head, taken apart for people. It was read strictly when it came in; here nothing is refused any more.
import type { ShownField } from '@tunnel/core';

export interface HeadLines {
  readonly first: string;
  readonly fields: readonly ShownField[];
}

export const headLines = (text: string): HeadLines => {
  const [first = '', ...lines] = text.split('\r\n');
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(':');
    return colon === -1 ? [] : [{ name: line.slice(0, colon), value: line.slice(colon + 1).trim() }];
  });
  return { first, fields };
};

/** The first of that name, or null. */
export const fieldValue = ({ fields }: HeadLines, lower: string): string | null =>
  fields.find(({ name }) => name.toLowerCase() === lower)?.value ?? null;

/** Path and query, also of a target in absolute form. */
export const pathOf = (target: string): string => {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '');
  return path === '' || path.startsWith('?') ? `/${path}` : path;
};
