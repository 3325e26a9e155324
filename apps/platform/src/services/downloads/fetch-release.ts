// Fills the downloads folder with the files of a release. Every file is written aside and checked against SHA256SUMS first; only when all files
// are right do they replace the previous release.
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type Clock, syncFolder, takeLock } from '@tunnel/runtime';
import {
  MANIFEST,
  parseManifest,
  parseSums,
  problemOfSums,
  RELEASE_LIST_MAX_BYTES,
  type Release,
  type ReleaseFile,
  SUMS,
} from './release.rules.ts';
import { openReleaseFile, readRelease } from './release-folder.ts';
import { openSource, type ReleaseSource } from './release-source.ts';

/** Folder inside the downloads folder, for files that are not checked yet. Removed at the end, and by the next command after a kill. */
const ASIDE = '.incoming';
const LOCK = '.lock';
/** The server runs as another user than the person at the console, and reads the files. */
const FILE_MODE = 0o644;
const FOLDER_MODE = 0o755;

export interface FetchOptions {
  /** A folder or a URL. */
  readonly from: string;
  readonly dir: string;
  readonly clock: Clock;
  /** Receives one line for each file. */
  readonly onProgress: (line: string) => void;
}

/** Throws DOWNLOADS_FETCH or DOWNLOADS_DIR; the previous release is then unchanged. */
export const fetchRelease = async (options: FetchOptions): Promise<Release> => {
  const { dir } = options;
  const lock = await inFolder(dir, async () => {
    await makeFolder(dir);
    return takeLock(join(dir, LOCK));
  });
  if (lock === null) throw new Fault('DOWNLOADS_DIR', { dir, reason: 'another command is filling the folder' });
  const aside = join(dir, ASIDE);
  try {
    await inFolder(dir, () => emptyFolder(aside));
    return await new ReleaseFetch(options, aside).run();
  } finally {
    await rm(aside, { recursive: true, force: true }).catch(() => {});
    lock.release();
  }
};

const emptyFolder = async (folder: string): Promise<void> => {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
};

class ReleaseFetch {
  readonly #options: FetchOptions;
  readonly #aside: string;

  constructor(options: FetchOptions, aside: string) {
    this.#options = options;
    this.#aside = aside;
  }

  async run(): Promise<Release> {
    const { from, clock, dir } = this.#options;
    const source = await this.#attempt(SOURCE, async () => openSource(from, clock));
    const manifest = await this.#readList(source, MANIFEST);
    const sums = await this.#readList(source, SUMS);
    const release = await this.#attempt(MANIFEST, async () => parseManifest(manifest.toString('utf8')));
    if (release.files.length === 0) throw this.#failed(MANIFEST, 'it lists no file for the client');
    const problem = problemOfSums(release, parseSums(sums.toString('utf8')), sha256(manifest));
    if (problem !== null) throw this.#failed(SUMS, problem);
    await inFolder(dir, () => checkPlaces(dir, [MANIFEST, SUMS, ...release.files.map(({ path }) => path)]));
    for (const [index, file] of release.files.entries()) {
      const isThere = await this.#hasAlready(file);
      if (!isThere) await this.#bring(source, file);
      this.#say(file, `${index + 1} of ${release.files.length}, ${isThere ? 'already there' : 'checked'}`);
    }
    await inFolder(dir, () => this.#putInPlace(release, [[SUMS, sums] as const, [MANIFEST, manifest] as const]));
    return release;
  }

  #say({ path, bytes }: ReleaseFile, state: string): void {
    this.#options.onProgress(`${path} (${(bytes / 1e6).toFixed(1)} MB): ${state}`);
  }

  async #readList(source: ReleaseSource, name: string): Promise<Buffer> {
    const pieces: Buffer[] = [];
    const keep = async (piece: Buffer): Promise<void> => void pieces.push(Buffer.from(piece));
    await this.#attempt(name, () => source.read(name, RELEASE_LIST_MAX_BYTES, keep));
    return Buffer.concat(pieces);
  }

  /** A command that was interrupted does not start again from the beginning. */
  async #hasAlready(file: ReleaseFile): Promise<boolean> {
    return (await stateOfFile(this.#options.dir, file)) === 'ok';
  }

  async #bring(source: ReleaseSource, file: ReleaseFile): Promise<void> {
    const { path, bytes, sha256 } = file;
    const target = join(this.#aside, ...path.split('/'));
    const hash = createHash('sha256');
    let written = 0;
    await this.#writeNew(target, async (out) => {
      // An error of the disk must not look like an error of the source.
      let diskError: unknown;
      const write = async (piece: Buffer): Promise<void> => {
        hash.update(piece);
        written += piece.length;
        await out.writeFile(piece).catch((error: unknown) => {
          diskError = error;
          throw error;
        });
      };
      try {
        await this.#attempt(path, () => source.read(path, bytes, write));
      } catch (error) {
        throw diskError ?? error;
      }
    });
    if (written !== bytes) throw this.#failed(path, `${written} bytes instead of ${bytes}`);
    if (hash.digest('hex') !== sha256) throw this.#failed(path, `the checksum differs from ${SUMS}`);
  }

  #writeNew(target: string, work: (out: FileHandle) => Promise<void>): Promise<void> {
    return inFolder(this.#options.dir, async () => {
      await mkdir(dirname(target), { recursive: true });
      const out = await open(target, 'wx', FILE_MODE);
      try {
        await work(out);
        // The mode of a new file depends on the umask.
        await out.chmod(FILE_MODE);
        await out.sync();
      } finally {
        await out.close();
      }
    });
  }

  /** manifest.json is last: a server that reads the folder meanwhile offers the previous release until then. */
  async #putInPlace(release: Release, lists: readonly (readonly [name: string, content: Buffer])[]): Promise<void> {
    const { dir } = this.#options;
    const previous = await readRelease(dir).catch(() => null);
    for (const [name, content] of lists) await this.#writeNew(join(this.#aside, name), (out) => out.writeFile(content));
    const fetched = release.files.map(({ path }) => path);
    for (const path of [...fetched, ...lists.map(([name]) => name)]) {
      const target = join(dir, ...path.split('/'));
      await makeFolder(dirname(target));
      await moveIfThere(join(this.#aside, ...path.split('/')), target);
    }
    await syncFolder(dir);
    for (const { path } of previous?.files ?? []) {
      if (!fetched.includes(path)) await rm(join(dir, ...path.split('/')), { force: true });
    }
  }

  async #attempt<T>(file: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#failed(file, error instanceof Error ? error.message : String(error));
    }
  }

  #failed(file: string, reason: string): Fault {
    return new Fault('DOWNLOADS_FETCH', { file, from: this.#options.from, reason });
  }
}

const SOURCE = 'the release';

const inFolder = async <T>(dir: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault('DOWNLOADS_DIR', { dir, reason: error instanceof Error ? error.message : String(error) });
  }
};

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** Readable for the server under any umask. Folders that exist keep their mode, which the operator may have chosen. */
const makeFolder = async (folder: string): Promise<void> => {
  const made = await mkdir(folder, { recursive: true });
  if (made !== undefined) await chmod(folder, FOLDER_MODE);
};

/**
 * Checks that every file can be put in place, because a failure halfway leaves a mix of two releases. The server does not follow links inside
 * the folder, so a folder behind a link is refused too.
 */
const checkPlaces = async (dir: string, paths: readonly string[]): Promise<void> => {
  for (const path of paths) {
    const parts = path.split('/');
    for (const [index] of parts.entries()) {
      const place = parts.slice(0, index + 1).join('/');
      const found = await lstatIfThere(join(dir, ...parts.slice(0, index + 1)));
      if (found === null) break;
      const isLast = index === parts.length - 1;
      if (isLast && found.isDirectory())
        throw new Error(`${place} is a folder, and the release has a file of this name`);
      if (!isLast && !found.isDirectory())
        throw new Error(`${place} is a link or a file, and the release has a folder of this name`);
    }
  }
};

const lstatIfThere = async (path: string): Promise<Stats | null> => {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return null;
  }
};

/** A file without a new copy was right already. */
const moveIfThere = async (from: string, to: string): Promise<void> => {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
};

export type FileState = 'ok' | 'missing' | 'changed';

/** Compares a file in the downloads folder with manifest.json, checksum included. */
const stateOfFile = async (dir: string, file: ReleaseFile): Promise<FileState> => {
  try {
    const { handle } = await openReleaseFile(dir, file);
    try {
      const hash = createHash('sha256');
      for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer);
      return hash.digest('hex') === file.sha256 ? 'ok' : 'changed';
    } finally {
      await handle.close();
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'changed';
  }
};

export interface ListedRelease extends Omit<Release, 'files'> {
  readonly files: readonly (ReleaseFile & { readonly state: FileState })[];
}

/** The release in a downloads folder, with every file checked. Throws DOWNLOADS_DIR. */
export const listRelease = (dir: string): Promise<ListedRelease> =>
  inFolder(dir, async () => {
    const release = await readRelease(dir);
    const files = [];
    for (const file of release.files) files.push({ ...file, state: await stateOfFile(dir, file) });
    return { ...release, files };
  });
