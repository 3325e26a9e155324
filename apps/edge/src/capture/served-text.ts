// The head of a captured request as its service got it, where rules changed it: made when somebody looks, from what came and what they changed. Most
// captures nobody looks at.
import { changedHead, type HeaderPair, parseRequestHead, type RequestChanges } from '@tunnel/core';

/** It was read strictly when it came, and was within its bounds. */
const UNBOUNDED = { fieldsMax: Number.POSITIVE_INFINITY };

/** Empty where it cannot be told any more: what a rule has taken away is never shown instead. */
export const servedText = (text: string, changes: RequestChanges): string => {
  const head = parseRequestHead(text, UNBOUNDED);
  return head.kind === 'problem' ? '' : changedHead(head, changes).text;
};

/** What is kept of the changes of one request. */
export const charsOfChanges = ({ path, cookie, set, add }: RequestChanges): number =>
  (path?.length ?? 0) + (cookie?.length ?? 0) + charsOf(set) + charsOf(add);

const charsOf = (pairs: readonly HeaderPair[]): number => {
  let chars = 0;
  for (const pair of pairs) chars += pair[0].length + pair[1].length;
  return chars;
};
