// Moves one file of the write-ahead log from the spool to the archive: compressed, under its name only when complete and on disk, and
// never in place of another file.
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { TokenBucket } from '@tunnel/rules/rate';
import { ASIDE, type Clock, syncFolder } from '@tunnel/runtime';
import { openRegular } from '../regular-file.ts';
import { SEGMENT_BYTES } from '../wal-names.rules.ts';

/** Fast compression, because most of a segment that PostgreSQL ended early is empty. */
const LEVEL = 1;
/** Bytes read at once. */
const PIECE_BYTES = 256 * 1024;
/** Maximum rate of reading the spool, so that a backlog leaves the disk and the processor to the database. */
const KB_PER_SECOND = 50_000;
const BURST_KB = 5000;

export interface ArchiveOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Limits the rate of all files of an archive together. */
export const archiveRate = (): TokenBucket => new TokenBucket({ perSecond: KB_PER_SECOND, burst: BURST_KB });

/** Thrown if the archive has a file of the same name with other content. Retrying is useless until an operator has decided. */
export class ArchiveConflict extends Error {
  constructor(to: string) {
    super(
      `${to} exists with other content, so the folder belongs to another database: set \`backup.dir\` to another folder`,
    );
    this.name = 'ArchiveConflict';
  }
}

/** Archives `from` as `to`. Resolves when the file is safely on disk, also if an earlier attempt had already archived the file. */
export const archiveFile = async (
  from: string,
  to: string,
  rate: TokenBucket,
  options: ArchiveOptions,
): Promise<void> => {
  // The spool belongs to the user of the database server, who can put anything in place of a segment.
  const source = await openRegular(from, { maxBytes: SEGMENT_BYTES });
  try {
    if (await exists(to)) {
      if ((await hashOf(source)) !== (await hashOfPacked(to))) throw new ArchiveConflict(to);
    } else await pack(source, to, rate, options);
    // Also for an existing file: a previous process may have ended between the rename and this call.
    await syncFolder(dirname(to));
  } finally {
    await source.close();
  }
};

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );

const readAll = (source: FileHandle) =>
  source.createReadStream({ start: 0, autoClose: false, highWaterMark: PIECE_BYTES });

/**
 * Reads a file at the rate of the archive. All pieces share one buffer, because buffers of their own would be most of the memory of the
 * process. The consumer must be done with a piece before it takes the next.
 */
const readPaced = async function* (source: FileHandle, rate: TokenBucket, clock: Clock): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await source.read(buffer, 0, PIECE_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    const waitMs = rate.waitMs(clock.monotonic());
    rate.charge(bytesRead / 1000, clock.monotonic());
    if (waitMs > 0) await new Promise<void>((resolve) => void clock.setTimeout(resolve, waitMs));
    yield buffer.subarray(0, bytesRead);
  }
};

const pack = async (
  source: FileHandle,
  to: string,
  rate: TokenBucket,
  { clock, signal }: ArchiveOptions,
): Promise<void> => {
  const aside = to + ASIDE;
  const target = await open(aside, 'w', 0o600);
  try {
    const write = async (pieces: AsyncIterable<Buffer>): Promise<void> => {
      for await (const piece of pieces) await target.appendFile(piece);
    };
    // A piece is far larger than the stream's high-water mark, so the pipeline takes the next piece only after `drain`.
    await pipeline(readPaced(source, rate, clock), createGzip({ level: LEVEL }), write, { signal });
    await target.sync();
    await target.close();
    await rename(aside, to);
  } catch (error) {
    await target.close().catch(() => {});
    // Frees the space of an incomplete file on a full disk.
    await rm(aside, { force: true }).catch(() => {});
    throw error;
  }
};

const hashOf = async (source: FileHandle): Promise<string> => {
  const hash = createHash('sha256');
  await pipeline(readAll(source), hash);
  return hash.digest('hex');
};

/** Returns the hash of a compressed file's content, or of its readable part if the file is damaged, which then differs from any segment. */
const hashOfPacked = async (path: string): Promise<string> => {
  const hash = createHash('sha256');
  let bytes = 0;
  const bounded = new Transform({
    transform: (piece: Buffer, _encoding, done) => {
      bytes += piece.length;
      done(bytes > SEGMENT_BYTES ? new Error('larger than a segment') : null, piece);
    },
  });
  try {
    const file = await openRegular(path, { follows: true });
    try {
      await pipeline(readAll(file), createGunzip(), bounded, hash);
    } finally {
      await file.close();
    }
    return hash.digest('hex');
  } catch (error) {
    if (isReadError(error)) throw error;
    return 'damaged';
  }
};

/** Returns whether a file could not be read, for example because the disk is gone. Errors of the content have no system call. */
const isReadError = (error: unknown): boolean => (error as NodeJS.ErrnoException).syscall !== undefined;
