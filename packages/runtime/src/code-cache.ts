// Runs a bundle with compiled code that an earlier run kept in the user's home folder, so that the program starts faster. V8 runs such code
// unchecked, so the code is kept only where no other user can write, and used only if its checksum is right. The cache is only an
// acceleration: without a usable folder or file, the bundle is compiled as usual.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, parse } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';

/** Files kept in the folder: one per command, version of the program and version of Node.js. Each has 1 to 2 MB. */
const FILES_KEPT = 16;

/** Maximum size of a file in bytes. A larger file is damaged. */
const FILE_MOST = 32 * 1024 * 1024;

/** Length of the checksum at the end of a file. */
const CHECKSUM_BYTES = 4;

/** What Node.js puts around the text of a CommonJS file. */
const WRAPPER = ['(function (exports, require, module, __filename, __dirname) {', '\n})'] as const;

interface User {
  readonly uid: number;
  readonly home: string;
}

/** Returns true for a folder that belongs to the user and that no other user can change. */
const isOwn = (folder: string, uid: number): boolean => {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found !== undefined && found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0;
};

/**
 * Returns the folder for compiled code, created if necessary. Null if the home folder or a folder on the way belongs to another user, as
 * with `sudo`, or can be changed by other users.
 */
export const openCacheFolder = ({ uid, home }: User): string | null => {
  // A home folder such as / belongs to the whole system.
  if (home === parse(home).root || !isOwn(home, uid)) return null;
  let folder = home;
  for (const part of ['.cache', 'hatchway']) {
    folder = join(folder, part);
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return null;
    }
    if (!isOwn(folder, uid)) return null;
  }
  return folder;
};

/** Reads compiled code. Undefined if the file does not exist, is not private to the user, or is damaged. */
export const readCode = (path: string, uid: number): Buffer | undefined => {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const found = fstatSync(file);
    const isPrivate = found.isFile() && found.uid === uid && found.nlink === 1 && (found.mode & 0o077) === 0;
    if (!isPrivate || found.size <= CHECKSUM_BYTES || found.size > FILE_MOST) return undefined;
    const bytes = readFileSync(file);
    const code = bytes.subarray(0, -CHECKSUM_BYTES);
    return crc32(code) === bytes.readUInt32LE(code.length) ? code : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
};

/** Writes compiled code atomically, and removes the oldest files of the folder. Throws if the code cannot be written. */
export const writeCode = (path: string, code: Buffer): void => {
  if (code.length + CHECKSUM_BYTES > FILE_MOST) return;
  const checksum = Buffer.alloc(CHECKSUM_BYTES);
  checksum.writeUInt32LE(crc32(code));
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, Buffer.concat([code, checksum]), { flag: 'wx', mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  removeOldest(dirname(path));
};

const removeOldest = (folder: string): void => {
  const found = readdirSync(folder)
    .map((name) => join(folder, name))
    .map((path) => ({ path, at: lstatSync(path).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { path } of found.slice(FILES_KEPT)) rmSync(path, { recursive: true, force: true });
};

/** Returns the folder for the compiled code of this process. Null if the system, the user or the environment does not allow one. */
const folderOfProcess = (uid: number | undefined): string | null => {
  const { NODE_DISABLE_COMPILE_CACHE: isOff, NODE_V8_COVERAGE: coverage } = process.env;
  // Functions from the cache have no precise coverage.
  if (isOff !== undefined || coverage !== undefined || uid === undefined || uid !== process.geteuid?.()) return null;
  return openCacheFolder({ uid, home: homedir() });
};

/** A loaded bundle, and the function that keeps its compiled code. Nothing is kept unless the program calls the function, or ends without an error. */
interface Loaded {
  readonly exports: unknown;
  readonly keepCode: () => void;
}

/**
 * Loads a CommonJS file, with compiled code from the cache if possible. `use` distinguishes runs that need different functions of the file,
 * such as commands. `load` is the `require` of the caller.
 */
export const loadWithCodeCache = (file: string, use: string, load: NodeJS.Require): Loaded => {
  const prepared = prepare(file, use);
  if (prepared === null) return { exports: load(file), keepCode: () => {} };
  const module = { exports: {} };
  prepared.run(module.exports, load, module, file, dirname(file));
  return { exports: module.exports, keepCode: prepared.keepCode };
};

interface Prepared {
  readonly run: (exports: object, require: NodeJS.Require, module: object, filename: string, dirname: string) => void;
  readonly keepCode: () => void;
}

const prepare = (file: string, use: string): Prepared | null => {
  try {
    const uid = process.getuid?.();
    const folder = folderOfProcess(uid);
    if (folder === null || uid === undefined) return null;
    const text = readFileSync(file);
    const { NODE_OPTIONS: options } = process.env;
    const circumstances = JSON.stringify([use, process.version, process.arch, process.execArgv, options]);
    const key = crc32(circumstances, crc32(text)).toString(16);
    const path = join(folder, `${basename(file, '.cjs')}-${key}`);
    const cachedData = readCode(path, uid);
    const source = `${WRAPPER[0]}${text.toString()}${WRAPPER[1]}`;
    const script = new Script(source, { filename: file, columnOffset: -WRAPPER[0].length, cachedData });
    const isUsed = cachedData !== undefined && script.cachedDataRejected !== true;
    return { run: script.runInThisContext() as Prepared['run'], keepCode: isUsed ? () => {} : keeper(script, path) };
  } catch {
    // For example, the file cannot be read. Loading the file as usual reports the fault.
    return null;
  }
};

/** Returns a function that keeps the compiled functions at its first call. Otherwise they are kept when the process ends without an error. */
const keeper = (script: Script, path: string): (() => void) => {
  const keep = (): void => {
    process.off('exit', keepAtExit);
    try {
      writeCode(path, script.createCachedData());
    } catch {
      // For example, the disk is full.
    }
  };
  const keepAtExit = (exitCode: number): void => {
    if (exitCode === 0) keep();
  };
  process.on('exit', keepAtExit);
  return keep;
};
