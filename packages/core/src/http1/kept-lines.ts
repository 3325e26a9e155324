// The field lines of a head that pass on unchanged, cut out of it in as few pieces as there are gaps.
import type { FieldRole } from './field-role.ts';
import { type HeaderField, LineField, linesOf } from './header-field.ts';

interface ReadHead {
  readonly text: string;
  readonly headers: readonly HeaderField[];
  readonly connectionNames: readonly string[] | null;
}

export const keptLines = (head: ReadHead, isKept: (role: FieldRole) => boolean): string => {
  if (!isOfLines(head.headers)) return linesOf(keptFields(head, isKept));
  const { text } = head;
  let lines = '';
  let from = -1;
  let to = -1;
  for (const field of head.headers) {
    if (isKept(field.role) && !isNamed(field, head.connectionNames)) {
      if (from === -1) from = field.from;
      to = field.to;
    } else if (from !== -1) {
      lines += text.slice(from, to);
      from = -1;
    }
  }
  return from === -1 ? lines : lines + text.slice(from, to);
};

/** A head is all lines of one text, or all parts. */
const isOfLines = (headers: readonly HeaderField[]): headers is readonly LineField[] => headers[0] instanceof LineField;

/** The fields that keptLines keeps, one by one: for HTTP/2, which has no lines. */
export const keptFields = (head: ReadHead, isKept: (role: FieldRole) => boolean): HeaderField[] =>
  head.headers.filter((field) => isKept(field.role) && !isNamed(field, head.connectionNames));

/**
 * A sender may declare any field its own matter with this connection (RFC 9110, 7.6.1). Only ordinary ones are removed for
 * that: whoever names Host, Content-Length or Expect there tries to make us forget them.
 */
const isNamed = (field: HeaderField, names: readonly string[] | null): boolean =>
  names !== null && field.role === 'ordinary' && names.includes(field.lower);
