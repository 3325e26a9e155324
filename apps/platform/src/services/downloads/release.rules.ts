// A release as its folder describes itself: manifest.json lists the files, SHA256SUMS has the checksums. Only the files that the server
// hands out count here.

export interface ReleaseFile {
  /** The last part of the path: the file's name below /downloads/. */
  readonly name: string;
  /** Path inside the release folder, with slashes. */
  readonly path: string;
  readonly bytes: number;
  /** Lower-case hex digits. */
  readonly sha256: string;
}

export interface Release {
  readonly version: string;
  readonly commit: string;
  /** Files that the server hands out, in the order of manifest.json. No two files have the same name. */
  readonly files: readonly ReleaseFile[];
}

export const MANIFEST = 'manifest.json';
export const SUMS = 'SHA256SUMS';

/** Maximum size of manifest.json and of SHA256SUMS. A release has about thirty files. */
export const RELEASE_LIST_MAX_BYTES = 1024 * 1024;
/** Maximum number of files in manifest.json. */
const RELEASE_FILES_MAX = 500;
/**
 * An executable has about 150 MB.
 * @limit operator: `tunnel-server downloads fetch`: file, size | the command fails, and replaces no file
 */
export const RELEASE_FILE_MAX_BYTES = 1024 * 1024 * 1024;

/** The server hands out the files in these folders, and the files at the top (license texts). Images, charts and parts lists stay with the operator. */
const FOLDERS: ReadonlySet<string> = new Set(['executables', 'npm', 'packages']);

const VERSION = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+][\w.+-]{1,100})?$/;
const COMMIT = /^[\w.-]{1,100}$/;
/** Every part begins with a letter or digit, so no part is `..` and no file is hidden. */
const PATH = /^(?=.{1,200}$)[A-Za-z0-9][\w.+~-]*(?:\/[A-Za-z0-9][\w.+~-]*)*$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** Parses manifest.json. Throws an Error with the reason. */
export const parseManifest = (text: string): Release => {
  const { version, commit, files } = parseObject(text);
  if (typeof version !== 'string' || !VERSION.test(version)) throw new Error('manifest.json has no valid version');
  if (typeof commit !== 'string' || !COMMIT.test(commit)) throw new Error('manifest.json has no valid commit');
  if (!Array.isArray(files) || files.length > RELEASE_FILES_MAX) {
    throw new Error(`manifest.json has no list of at most ${RELEASE_FILES_MAX} files`);
  }
  const offered = files.map(parseFile).filter(isOffered);
  const names = new Set<string>();
  for (const { name } of offered) {
    if (names.has(name)) throw new Error(`manifest.json has two files with the name ${name}`);
    names.add(name);
  }
  return { version, commit, files: offered };
};

const parseObject = (text: string): Record<string, unknown> => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('manifest.json is not valid JSON');
  }
  if (typeof value !== 'object' || value === null) throw new Error('manifest.json is not an object');
  return value as Record<string, unknown>;
};

const parseFile = (value: unknown, index: number): ReleaseFile => {
  const { path, bytes, sha256 } = (value ?? {}) as Record<string, unknown>;
  const reason = (problem: string): Error => new Error(`manifest.json: files[${index}] has no valid ${problem}`);
  if (typeof path !== 'string' || !PATH.test(path)) throw reason('path');
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 0) throw reason('size');
  if (typeof sha256 !== 'string' || !SHA256.test(sha256)) throw reason('sha256');
  return { name: path.slice(path.lastIndexOf('/') + 1), path, bytes, sha256 };
};

const isOffered = ({ path, name }: ReleaseFile): boolean => {
  // The server writes the list of checksums for visitors.
  if (name === SUMS || name === MANIFEST) return false;
  const [folder = '', ...rest] = path.split('/');
  return rest.length === 0 || FOLDERS.has(folder);
};

/** Parses SHA256SUMS, as sha256sum writes the file: checksums by path. Lines in another form are left out. */
export const parseSums = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split('\n').flatMap((line) => {
      const [, sha256 = '', path] = /^([0-9a-f]{64}) [ *](.+?)\r?$/.exec(line) ?? [];
      return path === undefined ? [] : [[path, sha256] as const];
    }),
  );

/** Returns why SHA256SUMS does not confirm manifest.json, or null. `manifestSha256` is the checksum of manifest.json. */
export const problemOfSums = (
  { files }: Release,
  sums: ReadonlyMap<string, string>,
  manifestSha256: string,
): string | null => {
  const listed = sums.get(MANIFEST);
  if (listed !== undefined && listed !== manifestSha256) return `${MANIFEST} does not match its checksum in ${SUMS}`;
  for (const { path, sha256, bytes } of files) {
    if (!sums.has(path)) return `${SUMS} has no checksum of ${path}`;
    if (sums.get(path) !== sha256) return `${SUMS} and ${MANIFEST} have different checksums of ${path}`;
    if (bytes > RELEASE_FILE_MAX_BYTES) return `${path} is larger than ${RELEASE_FILE_MAX_BYTES} bytes`;
  }
  return null;
};

/**
 * SHA256SUMS as /downloads/ serves the list: with the names below /downloads/ instead of paths, so that `sha256sum -c` works in the folder of a
 * downloaded file.
 */
export const sumsByName = ({ files }: Release): string =>
  files.map(({ sha256, name }) => `${sha256}  ${name}\n`).join('');

/** The npm tarball of the client, with or without a scope: hatchway-1.2.3.tgz or acme-hatchway-1.2.3.tgz. Undefined if the release has none. */
export const clientTarball = ({ files, version }: Release): ReleaseFile | undefined => {
  const tarball = `hatchway-${version}.tgz`;
  return files.find(({ path, name }) => path.startsWith('npm/') && (name === tarball || name.endsWith(`-${tarball}`)));
};

/** Whether the release has an executable of the client, named tunnel-<system>-<architecture>, for one of these systems. */
export const hasExecutable = ({ files }: Release, ...systems: readonly string[]): boolean =>
  files.some(({ path }) => systems.some((system) => path.startsWith(`executables/tunnel-${system}-`)));
