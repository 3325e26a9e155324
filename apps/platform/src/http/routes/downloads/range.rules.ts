// The part of a file that a request asks for (RFC 9110, 14).

export interface FilePart {
  readonly start: number;
  readonly length: number;
}

export interface RangeHeaders {
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
}

/**
 * Returns the requested part of a file with `bytes` bytes. 'whole': there is no range, the range belongs to another content of the file, or has a
 * form that is not supported, such as several parts. 'outside': the file has no such bytes.
 */
export const readRange = (
  { range, ifRange }: RangeHeaders,
  { bytes, etag }: { readonly bytes: number; readonly etag: string },
): FilePart | 'whole' | 'outside' => {
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return 'whole';
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(range.trim()) ?? [];
  if (first === '' && last === '') return 'whole';
  if (first === '') return lastBytes(Number(last), bytes);
  const start = Number(first);
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (last !== '' && Number(last) < start) return 'whole';
  return start >= bytes ? 'outside' : { start, length: end - start + 1 };
};

const lastBytes = (wanted: number, bytes: number): FilePart | 'outside' => {
  const length = Math.min(wanted, bytes);
  return length === 0 ? 'outside' : { start: bytes - length, length };
};
