// Files of names, one name a line. The first line says which file it is.
import { type LineRecord, lineOf, recordsIn } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';

const VERSION = 1;

/** How much of such a file is read, waits and is appended. */
export const NAME_FILE_BOUNDS = {
  maxBytes: EDGE_LIMITS.NAMES_FILE_MAX_BYTES,
  queueChars: EDGE_LIMITS.NAMES_FILE_QUEUE_CHARS,
  tailChars: EDGE_LIMITS.NAMES_FILE_TAIL_CHARS,
} as const;

export function* nameLines(file: string, rows: Iterable<object>): Generator<string> {
  yield lineOf({ file, version: VERSION });
  for (const row of rows) yield lineOf(row);
}

/** The rows of the file, unchecked; an empty file has none. Throws if it is another file. */
export const rowsIn = (text: string, file: string): Iterable<LineRecord> =>
  text === '' ? [] : recordsIn(text, (head) => head['file'] === file && head['version'] === VERSION);
