// Reads times of transactions from a segment of PostgreSQL's write-ahead log (WAL). A restore can stop at a time only if a later
// transaction is in the log, so the last of these times is the latest time that can be restored. Pure functions on bytes.
import { SEGMENT_BYTES, type Segment } from './wal-names.rules.ts';

const PAGE_BYTES = 8192;
const PAGE_HEAD_BYTES = 24;
/** Size of the page header at the start of a segment, which also has the identity of the cluster. */
const LONG_HEAD_BYTES = 40;
/** Bytes at the start of a segment that identify the segment. */
export const SEGMENT_HEAD_BYTES = LONG_HEAD_BYTES;
const IS_CONTINUATION = 0x0001;
const IS_LONG_HEAD = 0x0002;

const RECORD_HEAD_BYTES = 24;
/** Bytes of a record that are read. The time of a transaction is at most 24 bytes behind the record's header. */
const PREFIX_BYTES = 64;

const TRANSACTION_RECORDS = 1;
const KIND_MASK = 0x70;
/** Commits and aborts, each also of prepared transactions: the kinds at which a recovery to a time can stop. */
const ENDS = new Set([0x00, 0x20, 0x30, 0x40]);

const DATA_SHORT = 255;
const DATA_LONG = 254;
const ORIGIN = 253;
const TOP_TRANSACTION = 252;

/** PostgreSQL counts time in microseconds from the year 2000. */
const EPOCH_MS = Date.UTC(2000, 0, 1);

export interface TransactionEnd {
  /** Position of the record in the log. */
  readonly lsn: bigint;
  /** Time of the commit or abort, in milliseconds. */
  readonly at: number;
}

/**
 * Returns whether the bytes are the given segment of a timeline, by the header of their first page. In the segment in which a timeline
 * began, the first pages are those of an earlier timeline.
 */
export const isSegment = (bytes: Uint8Array, segment: Segment): boolean =>
  bytes.length === SEGMENT_BYTES && isSegmentHead(bytes, segment);

/** Like {@link isSegment}, for the first bytes of a file. */
export const isSegmentHead = (bytes: Uint8Array, { timeline, number }: Segment): boolean => {
  if (bytes.length < SEGMENT_HEAD_BYTES) return false;
  const view = viewOf(bytes);
  return (
    (view.getUint16(2, true) & IS_LONG_HEAD) !== 0 &&
    view.getUint32(4, true) <= timeline &&
    view.getBigUint64(8, true) === startOf(number)
  );
};

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const startOf = (number: number): bigint => BigInt(number) * BigInt(SEGMENT_BYTES);

/**
 * Yields the ends of transactions whose record is completely in a segment, in the order of the log. Stops at the first bytes that are not
 * a record, which are the unused rest of the segment.
 */
export function* transactionEnds(bytes: Uint8Array, { number }: Segment): Generator<TransactionEnd> {
  const view = viewOf(bytes);
  const prefix = new Uint8Array(PREFIX_BYTES);
  let at = firstRecord(view);
  while (at !== null && at + 4 <= view.byteLength) {
    const lengthBytes = view.getUint32(at, true);
    if (lengthBytes < RECORD_HEAD_BYTES) return;
    const end = readAcross(view, at, lengthBytes, prefix);
    if (end === null) return;
    const time = timeOf(viewOf(prefix), Math.min(lengthBytes, PREFIX_BYTES));
    if (time !== null) yield { lsn: startOf(number) + BigInt(at), at: time };
    at = afterHead(view, Math.ceil(end / 8) * 8);
  }
}

/** Returns where the first record begins. A record of the previous segment may continue at the start. */
const firstRecord = (view: DataView): number | null => {
  const head = headBytes(view, 0);
  const isContinuation = (view.getUint16(2, true) & IS_CONTINUATION) !== 0;
  const end = readAcross(view, head, isContinuation ? view.getUint32(16, true) : 0, new Uint8Array(0));
  return end === null ? null : afterHead(view, Math.ceil(end / 8) * 8);
};

const headBytes = (view: DataView, page: number): number =>
  (view.getUint16(page + 2, true) & IS_LONG_HEAD) === 0 ? PAGE_HEAD_BYTES : LONG_HEAD_BYTES;

/** Skips the header of a page if a position is at the start of the page. Null at the end of the segment. */
const afterHead = (view: DataView, at: number): number | null => {
  if (at >= view.byteLength) return null;
  return at % PAGE_BYTES === 0 ? at + headBytes(view, at) : at;
};

/**
 * Reads bytes that continue behind the header of the next page, and returns the position behind them. The first bytes are copied to
 * `prefix`. Null if the segment ends before.
 */
const readAcross = (view: DataView, from: number, lengthBytes: number, prefix: Uint8Array): number | null => {
  let at = from;
  let taken = 0;
  while (taken < lengthBytes) {
    const start = afterHead(view, at);
    if (start === null) return null;
    const pageEnd = (Math.floor(start / PAGE_BYTES) + 1) * PAGE_BYTES;
    const some = Math.min(lengthBytes - taken, pageEnd - start, view.byteLength - start);
    for (let index = 0; index < some && taken + index < prefix.length; index += 1) {
      prefix[taken + index] = view.getUint8(start + index);
    }
    taken += some;
    at = start + some;
  }
  return at;
};

/** Returns the time in a record of a transaction's end. Null for any other record. */
const timeOf = (record: DataView, lengthBytes: number): number | null => {
  if (record.getUint8(17) !== TRANSACTION_RECORDS || !ENDS.has(record.getUint8(16) & KIND_MASK)) return null;
  let at = RECORD_HEAD_BYTES;
  while (at < lengthBytes) {
    const id = record.getUint8(at);
    if (id === DATA_SHORT || id === DATA_LONG) {
      const data = at + (id === DATA_SHORT ? 2 : 5);
      if (data + 8 > lengthBytes) return null;
      return EPOCH_MS + Math.floor(Number(record.getBigInt64(data, true)) / 1000);
    }
    if (id === ORIGIN) at += 3;
    else if (id === TOP_TRANSACTION) at += 5;
    else return null;
  }
  return null;
};
