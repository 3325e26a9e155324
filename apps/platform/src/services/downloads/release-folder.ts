// The folder with the files of a release, `[platform] downloads_dir`. The operator can replace the release while the server runs.
import { constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type Logger, readBounded, sha256Hex } from '@tunnel/runtime';
import { MANIFEST, parseManifest, RELEASE_LIST_MAX_BYTES, type Release, type ReleaseFile } from './release.rules.ts';

export interface ReleaseFolderOptions {
  /** Empty: the operator has no such folder. */
  readonly dir: string;
  readonly logger: Logger;
  readonly read?: typeof readRelease;
}

/** The release of the last call. */
interface KnownRelease {
  /** State of the manifest.json that described the release. */
  readonly manifest: string;
  readonly release: Release | null;
  /** Whether the same manifest.json has the same result the next time. */
  readonly isFinal: boolean;
}

export class ReleaseFolder {
  readonly #dir: string;
  readonly #logger: Logger;
  readonly #read: typeof readRelease;
  #known: KnownRelease = { manifest: '', release: null, isFinal: true };

  constructor({ dir, logger, read = readRelease }: ReleaseFolderOptions) {
    this.#dir = dir;
    this.#logger = logger;
    this.#read = read;
  }

  /** Null if there is no release, or none that can be read; the log has the reason, once for each state of manifest.json. */
  async read(): Promise<Release | null> {
    if (this.#dir === '') return null;
    const manifest = await stateOf(join(this.#dir, MANIFEST));
    const known = this.#known;
    if (manifest !== known.manifest || !known.isFinal) this.#known = await this.#parse(manifest);
    return this.#known.release;
  }

  async #parse(manifest: string): Promise<KnownRelease> {
    try {
      return { manifest, release: await this.#read(this.#dir), isFinal: true };
    } catch (error) {
      if (manifest !== this.#known.manifest)
        this.#logger.warn({ dir: this.#dir, err: error }, 'the downloads folder cannot be used');
      // An error of the machine, such as too many open files, passes without a change of manifest.json.
      return { manifest, release: null, isFinal: (error as NodeJS.ErrnoException).code === undefined };
    }
  }

  /** Opens a file of the release. Throws DOWNLOAD_UNAVAILABLE if the file is missing or differs from manifest.json. */
  async open(file: ReleaseFile): Promise<OpenedFile> {
    try {
      return await openReleaseFile(this.#dir, file);
    } catch (error) {
      throw new Fault('DOWNLOAD_UNAVAILABLE', { name: file.name }, { cause: error });
    }
  }
}

/** Changes when the file is replaced or written to. */
const stateOf = async (file: string): Promise<string> => {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return `${(error as NodeJS.ErrnoException).code}`;
  }
};

/** Reads manifest.json of a folder. Throws an Error with the reason. */
export const readRelease = async (dir: string): Promise<Release> => {
  const text = await readBounded(join(dir, MANIFEST), RELEASE_LIST_MAX_BYTES);
  if (text === null) throw new Error(`${dir} has no ${MANIFEST}`);
  return parseManifest(text);
};

export interface OpenedFile {
  readonly handle: FileHandle;
  /** Differs for every content and every write to the file. */
  readonly etag: string;
  /** Returns true if the file has not been written to since it was opened. A file that was replaced or deleted keeps its content. */
  isUnchanged(): Promise<boolean>;
}

/** No link is followed, and a pipe does not block. Windows has neither flag. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export const openReleaseFile = async (dir: string, { path, bytes, sha256 }: ReleaseFile): Promise<OpenedFile> => {
  const folder = await realpath(dir);
  const wanted = join(folder, ...path.split('/'));
  // A link in the folder, for the file or for a folder on the way, could lead to any file of this machine.
  if ((await realpath(wanted)) !== wanted) throw new Error(`${path} is a link, or reached through a link`);
  const handle = await open(wanted, OPEN_FLAGS);
  try {
    const opened = await handle.stat();
    if (!opened.isFile()) throw new Error(`${path} is not a file`);
    if (opened.size !== bytes) throw new Error(`${path} has ${opened.size} bytes instead of ${bytes}`);
    const etag = `"${sha256Hex(`${sha256} ${opened.mtimeMs} ${opened.ctimeMs}`).slice(0, 32)}"`;
    const isUnchanged = async (): Promise<boolean> => {
      const now = await handle.stat();
      if (now.size !== opened.size || now.mtimeMs !== opened.mtimeMs) return false;
      // A program can set mtime back after a write, but not ctime, which changes with the number of links too.
      return now.ctimeMs === opened.ctimeMs || now.nlink < opened.nlink;
    };
    return { handle, etag, isUnchanged };
  } catch (error) {
    await handle.close();
    throw error;
  }
};
