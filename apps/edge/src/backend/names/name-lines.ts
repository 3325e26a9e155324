// Files of names, one name a line. The first line says which file it is.

import { type LineRecord, lineOf, recordsIn } from '@tunnel/runtime';
import { NAMES_FILE_MAX_BYTES } from './limits.ts';

/** changes that wait for the disk; with more, the whole file is written anew instead */
const NAMES_FILE_QUEUE_CHARS = 1024 * 1024;
/** lines behind the last whole one; then the file is written anew */
const NAMES_FILE_TAIL_CHARS = 4 * 1024 * 1024;

const VERSION = 1;

/** How much of such a file is read, waits and is appended. */
export const NAME_FILE_BOUNDS = {
  maxBytes: NAMES_FILE_MAX_BYTES,
  queueChars: NAMES_FILE_QUEUE_CHARS,
  tailChars: NAMES_FILE_TAIL_CHARS,
} as const;

export function* nameLines(file: string, rows: Iterable<object>): Generator<string> {
  yield lineOf({ file, version: VERSION });
  for (const row of rows) yield lineOf(row);
}

/** The rows of the file, unchecked; an empty file has none. Throws if it is another file. */
export const rowsIn = (text: string, file: string): Iterable<LineRecord> =>
  text === '' ? [] : recordsIn(text, (head) => head['file'] === file && head['version'] === VERSION);
