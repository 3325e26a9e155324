// Copies files for backups and restores: in small pieces, with a hash, at a bounded rate, and safely on disk before the copy counts.
import { createHash } from 'node:crypto';
import { type FileHandle, lstat, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TokenBucket } from '@tunnel/rules/rate';
import { type Clock, syncFolder } from '@tunnel/runtime';
import type { Entry } from './plan.rules.ts';
import { openRegular } from './regular-file.ts';

/** Bytes read and written at once. One buffer serves a whole backup, so its memory does not depend on the size of the database. */
const PIECE_BYTES = 1024 * 1024;
/**
 * Maximum bytes written before they are flushed to disk. A large flush at the end of a file would delay the flushes of the database on
 * the same disk.
 */
const FLUSH_EVERY_BYTES = 32 * PIECE_BYTES;
/**
 * Maximum rate of copying, so that a backup leaves the disk to the database.
 * @limit operator: Copying of a backup, in kB per second | copying pauses
 */
const COPY_KB_PER_SECOND = 200_000;
const COPY_BURST_KB = 20_000;

/** Copies that are flushed together. A cluster has more than a thousand small files, and disks flush several files almost as fast as one. */
const FLUSHED_TOGETHER = 32;

// ---- listing ----

interface ListOptions {
  /** Returns whether to list the content of a folder. */
  readonly enters: (folder: string) => boolean;
  /** Lists a link to a file as the file. */
  readonly followsFiles?: boolean;
}

/** Lists everything below a folder. Entries that vanish meanwhile are left out. */
export const listEntries = async (root: string, options: ListOptions, below = ''): Promise<Entry[]> => {
  const found: Entry[] = [];
  for (const entry of await readdir(join(root, below), { withFileTypes: true }).catch(ifMissing([]))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) {
      found.push({ path, kind: 'folder' });
      if (options.enters(path)) found.push(...(await listEntries(root, options, path)));
    } else if (entry.isSymbolicLink()) {
      const isFile = options.followsFiles === true && (await isFileAt(join(root, path)));
      found.push({ path, kind: isFile ? 'file' : 'link' });
    } else found.push({ path, kind: entry.isFile() ? 'file' : 'other' });
  }
  return found;
};

const isFileAt = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );

const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return value;
    throw error;
  };

// ---- copying ----

export interface Copied {
  readonly bytes: number;
  readonly sha256: string;
}

export interface CopyOptions {
  readonly from: string;
  readonly to: string;
  /** Follows a symbolic link at `from`. Without it, a link is an error. */
  readonly follows?: boolean;
  /** Flushes the copy to disk. */
  readonly flush: boolean;
}

export interface CopierOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Called after every piece, with the bytes copied so far. Copying waits for the returned promise. */
  readonly onPiece?: (bytes: number) => Promise<void> | void;
}

export class Copier {
  readonly #options: CopierOptions;
  readonly #buffer = Buffer.allocUnsafe(PIECE_BYTES);
  readonly #rate = new TokenBucket({ perSecond: COPY_KB_PER_SECOND, burst: COPY_BURST_KB });
  readonly #folders = new Set<string>();
  /** Copies that are not on disk yet. */
  readonly #unflushed: FileHandle[] = [];
  #bytes = 0;

  constructor(options: CopierOptions) {
    this.#options = options;
  }

  /**
   * Copies a file to a new file of mode 0600. The size at the start counts: bytes appended meanwhile are not copied, so that a growing
   * file has an end. Returns null if there is no such file any more.
   */
  async copy({ from, to, follows = false, flush }: CopyOptions): Promise<Copied | null> {
    const source = await openRegular(from, { follows }).catch(ifMissing(null));
    if (source === null) return null;
    try {
      await this.folder(dirname(to));
      const target = await open(to, 'wx', 0o600);
      if (flush) this.#unflushed.push(target);
      try {
        return await this.#pump(source, target, { size: (await source.stat()).size, flush });
      } finally {
        if (!flush) await target.close();
        if (this.#unflushed.length >= FLUSHED_TOGETHER) await this.flush();
      }
    } finally {
      await source.close();
    }
  }

  async #pump(
    source: FileHandle,
    target: FileHandle,
    { size, flush }: { readonly size: number; readonly flush: boolean },
  ): Promise<Copied> {
    const hash = createHash('sha256');
    let at = 0;
    let unflushed = 0;
    while (at < size) {
      const { bytesRead } = await source.read(this.#buffer, 0, Math.min(PIECE_BYTES, size - at), at);
      // The file was cut while it was read. PostgreSQL's log has the reason for the cut.
      if (bytesRead === 0) break;
      const piece = this.#buffer.subarray(0, bytesRead);
      hash.update(piece);
      await writeAll(target, piece, at);
      at += bytesRead;
      unflushed += bytesRead;
      if (flush && unflushed >= FLUSH_EVERY_BYTES) {
        await target.datasync();
        unflushed = 0;
      }
      await this.#took(bytesRead);
    }
    return { bytes: at, sha256: hash.digest('hex') };
  }

  /** Flushes and closes the copies that are still open. Call this method at the end, also after an error. */
  async flush(): Promise<void> {
    const files = this.#unflushed.splice(0);
    const flushed = await Promise.allSettled(files.map(syncAndClose));
    const failed = flushed.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason as Error;
  }

  /** Hashes a file without copying it. Returns null if there is no such file. */
  async hash(path: string): Promise<Copied | null> {
    const source = await openRegular(path).catch(ifMissing(null));
    if (source === null) return null;
    try {
      const hash = createHash('sha256');
      for (let at = 0; ; ) {
        const { bytesRead } = await source.read(this.#buffer, 0, PIECE_BYTES, at);
        if (bytesRead === 0) return { bytes: at, sha256: hash.digest('hex') };
        hash.update(this.#buffer.subarray(0, bytesRead));
        at += bytesRead;
        this.#options.signal?.throwIfAborted();
      }
    } finally {
      await source.close();
    }
  }

  /** Creates a folder of mode 0700 with its parents, unless it exists. */
  async folder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    await mkdir(path, { recursive: true, mode: 0o700 });
    this.#folders.add(path);
  }

  /** Flushes all copies and their folders, so that the names of the copies survive a power failure. */
  async syncAll(): Promise<void> {
    await this.flush();
    for (const folder of this.#folders) await syncFolder(folder);
  }

  async #took(bytes: number): Promise<void> {
    const { clock, signal, onPiece } = this.#options;
    signal?.throwIfAborted();
    this.#bytes += bytes;
    this.#rate.charge(bytes / 1000, clock.monotonic());
    await onPiece?.(this.#bytes);
    const waitMs = this.#rate.waitMs(clock.monotonic());
    if (waitMs > 1) await new Promise<void>((resolve) => void clock.setTimeout(resolve, waitMs));
  }
}

const syncAndClose = async (file: FileHandle): Promise<void> => {
  try {
    await file.sync();
  } finally {
    await file.close();
  }
};

const writeAll = async (target: FileHandle, piece: Buffer, at: number): Promise<void> => {
  for (let written = 0; written < piece.length; ) {
    const { bytesWritten } = await target.write(piece, written, piece.length - written, at + written);
    written += bytesWritten;
  }
};

/** Returns whether a path is missing, or an empty folder. */
export const isAbsentOrEmpty = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch(ifMissing(null));
  if (found === null) return true;
  return found.isDirectory() && (await readdir(path)).length === 0;
};

export const removeFolder = (path: string): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 5 });
