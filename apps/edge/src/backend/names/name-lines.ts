// The lines of a file of names: a head that says which file it is, then a row each. By hand, as a schema takes ten times as long.
import { EDGE_LIMITS } from '../../limits.ts';

const VERSION = 1;

/** How much of such a file is read, waits and is appended. */
export const NAME_FILE_BOUNDS = {
  maxBytes: EDGE_LIMITS.NAMES_FILE_MAX_BYTES,
  queueChars: EDGE_LIMITS.NAMES_FILE_QUEUE_CHARS,
  tailChars: EDGE_LIMITS.NAMES_FILE_TAIL_CHARS,
} as const;

export const lineOf = (row: object): string => `${JSON.stringify(row)}\n`;

/** All of it, in pieces that take no time. */
export function* piecesOf(file: string, rows: Iterable<object>): Generator<string> {
  let piece = lineOf({ file, version: VERSION });
  let count = 0;
  for (const row of rows) {
    piece += lineOf(row);
    count += 1;
    if (count % EDGE_LIMITS.NAMES_ROWS_PER_TURN !== 0) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/** Its rows, as somebody wrote them. Throws where it is no such file. */
export function* rowsIn(text: string, file: string): Generator<Record<string, unknown>> {
  let from = 0;
  // The last line may be torn, which is what a crash leaves.
  for (let to = text.indexOf('\n'); to !== -1; to = text.indexOf('\n', from)) {
    const row = JSON.parse(text.slice(from, to)) as Record<string, unknown>;
    if (from > 0) yield row;
    else if (row['file'] !== file || row['version'] !== VERSION) throw new Error('it begins as no such file does');
    from = to + 1;
  }
}
