// Files of PostgreSQL's write-ahead log: packs segments for a backup, reads packed segments, and unpacks them for a restore.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, stat, writeFile } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip } from 'node:zlib';
import type { Copied } from './copy-files.ts';
import { openRegular } from './regular-file.ts';
import { SEGMENT_BYTES, type Segment } from './wal-names.rules.ts';
import { isSegmentHead, SEGMENT_HEAD_BYTES } from './wal-records.rules.ts';

/** Fast compression: most of a segment is empty. */
const LEVEL = 1;
/** Largest packed file. Data that cannot be compressed grows by less than a thousandth. */
const MOST_PACKED_BYTES = SEGMENT_BYTES + SEGMENT_BYTES / 64;
/** Bytes of a segment that are left out of an unpacked file if all of them are zero. */
const HOLE_BYTES = 64 * 1024;
const HOLE = Buffer.alloc(HOLE_BYTES);

/**
 * Compresses a file of the log into a new file. Returns null if the file is missing, if it is not the given segment, or if PostgreSQL has
 * renamed it meanwhile to use it for a later segment. A packed segment is not read again, because a backup can have hundreds of them.
 */
export const packWalFile = async (from: string, to: string, segment: Segment | null): Promise<Copied | null> => {
  const source = await openRegular(from).catch(() => null);
  if (source === null) return null;
  try {
    if (segment !== null && !(await hasHeadOf(source, segment))) return null;
    const copied = await packHandle(source, to);
    const [opened, named] = await Promise.all([source.stat(), stat(from).catch(() => null)]);
    return named?.ino === opened.ino ? copied : null;
  } finally {
    await source.close();
  }
};

const hasHeadOf = async (source: FileHandle, segment: Segment): Promise<boolean> => {
  const { buffer, bytesRead } = await source.read(Buffer.alloc(SEGMENT_HEAD_BYTES), 0, SEGMENT_HEAD_BYTES, 0);
  return bytesRead === SEGMENT_HEAD_BYTES && isSegmentHead(buffer, segment);
};

const packHandle = async (source: FileHandle, to: string): Promise<Copied> => {
  const hash = createHash('sha256');
  let bytes = 0;
  const count = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const target = createWriteStream(to, { mode: 0o600, flags: 'w', flush: true });
  await pipeline(source.createReadStream({ start: 0, autoClose: false }), createGzip({ level: LEVEL }), count, target);
  return { bytes, sha256: hash.digest('hex') };
};

/** Copies a packed file of the log to a new file. */
export const copyPacked = async (from: string, to: string): Promise<Copied> => {
  const packed = await readWhole(from);
  await writeFile(to, packed, { mode: 0o600, flush: true });
  return { bytes: packed.length, sha256: createHash('sha256').update(packed).digest('hex') };
};

const unzip = promisify(gunzip);

/** Returns the content of a packed file of the log. Rejects if the file is corrupt, or larger than a segment. */
export const readPacked = async (path: string): Promise<Buffer> =>
  unzip(await readWhole(path), { maxOutputLength: SEGMENT_BYTES });

const readWhole = async (path: string): Promise<Buffer> => {
  const file = await openRegular(path, { follows: true, maxBytes: MOST_PACKED_BYTES });
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
};

/** Writes a file of the log without its empty parts, so that a day of small segments does not take 16 MB of disk each. */
export const writeSparse = async (path: string, content: Buffer): Promise<void> => {
  const file = await open(path, 'wx', 0o600);
  try {
    for (let at = 0; at < content.length; at += HOLE_BYTES) {
      const piece = content.subarray(at, at + HOLE_BYTES);
      if (!piece.equals(HOLE.subarray(0, piece.length))) await file.write(piece, 0, piece.length, at);
    }
    await file.truncate(content.length);
  } finally {
    await file.close();
  }
};
