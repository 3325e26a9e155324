// Format of the files of names: one name per line, after a first line that identifies the file.

import { type LineRecord, lineOf, recordsIn } from '@tunnel/runtime';
import { NAMES_FILE_MAX_BYTES } from './limits.ts';

/** Maximum characters of changes waiting for the disk. Above the limit, the whole file is rewritten instead. */
const NAMES_FILE_QUEUE_CHARS = 1024 * 1024;
/** Maximum characters appended to a file of names since the last rewrite. Above the limit, the whole file is rewritten. */
const NAMES_FILE_TAIL_CHARS = 4 * 1024 * 1024;

const VERSION = 1;

/** Limits of a file of names: maximum size, maximum queue, and maximum appended text. */
export const NAME_FILE_BOUNDS = {
  maxBytes: NAMES_FILE_MAX_BYTES,
  queueChars: NAMES_FILE_QUEUE_CHARS,
  tailChars: NAMES_FILE_TAIL_CHARS,
} as const;

export function* nameLines(file: string, rows: Iterable<object>): Generator<string> {
  yield lineOf({ file, version: VERSION });
  for (const row of rows) yield lineOf(row);
}

/** Returns the rows of a file of names, without validation. An empty file has no rows. Throws if the first line identifies another file. */
export const rowsIn = (text: string, file: string): Iterable<LineRecord> =>
  text === '' ? [] : recordsIn(text, (head) => head['file'] === file && head['version'] === VERSION);
