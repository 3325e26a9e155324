// Runs a bundle with compiled code, so that the program starts faster. An earlier run kept the code in the user's home folder, or the build
// of the bundle put the code beside it. V8 runs such code unchecked, so a file is used only if no other user can write it and its checksum
// is right. Its name contains a checksum of the bundle and the version of Node.js. The cache is only an acceleration: without a usable
// folder or file, the bundle is compiled as usual.
import { isAscii } from 'node:buffer';
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
  statSync,
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

/** Permissions that a file in the user's folder must not have: all permissions of other users. */
const OF_OTHERS = 0o077;

/** Permissions that a file beside the bundle must not have. Other users can run the program, so they can read the file. */
const TO_WRITE = 0o022;

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
 * Returns the folder for compiled code. Null if the folder is missing and `create` is false, or if the home folder or a folder on the way
 * belongs to another user, as with `sudo`, or can be changed by other users.
 */
export const openCacheFolder = ({ uid, home }: User, { create }: { create: boolean }): string | null => {
  // A home folder such as / belongs to the whole system.
  if (home === parse(home).root || !isOwn(home, uid)) return null;
  let folder = home;
  for (const part of ['.cache', 'hatchway']) {
    folder = join(folder, part);
    if (create) makeFolder(folder);
    if (!isOwn(folder, uid)) return null;
  }
  return folder;
};

const makeFolder = (folder: string): void => {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // The folder exists already, or is missing because it cannot be created.
  }
};

/** The owner that a file must have, and the permissions that it must not have. */
interface Trust {
  readonly uid: number;
  readonly forbidden: number;
}

/** Reads compiled code. Undefined if the file does not exist, has another owner or a forbidden permission, or is damaged. */
export const readCode = (path: string, { uid, forbidden }: Trust): Buffer | undefined => {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const found = fstatSync(file);
    const isTrusted = found.isFile() && found.uid === uid && found.nlink === 1 && (found.mode & forbidden) === 0;
    if (!isTrusted || found.size <= CHECKSUM_BYTES || found.size > FILE_MOST) return undefined;
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

/** Returns the user with a folder for compiled code. Null on systems without user ids, and in a process with the rights of two users. */
const userOfProcess = (): User | null => {
  const uid = process.getuid?.();
  return uid === undefined || uid !== process.geteuid?.() ? null : { uid, home: homedir() };
};

/** Runs that need different functions of a bundle, such as commands. */
export interface Uses {
  readonly use: string;
  /** The run for which the build put compiled code beside the bundle. The code is useful for all runs. Null without such code. */
  readonly built: string | null;
}

/** A loaded bundle, and the function that keeps its compiled code. Nothing is kept unless the program calls the function, or ends without an error. */
interface Loaded {
  readonly exports: unknown;
  readonly keepCode: () => void;
}

/** Loads a CommonJS file, with compiled code if possible. `load` is the `require` of the caller. */
export const loadWithCodeCache = (file: string, uses: Uses, load: NodeJS.Require): Loaded => {
  const { NODE_DISABLE_COMPILE_CACHE: isOff, NODE_V8_COVERAGE: coverage } = process.env;
  // Functions from the cache have no precise coverage.
  if (isOff !== undefined || coverage !== undefined) return loadAsUsual(file, load);
  return loadForUser(userOfProcess(), file, uses, load);
};

/** Loads a CommonJS file with the code of a user, or with code beside the file. Null for a user without a folder for code. */
export const loadForUser = (user: User | null, file: string, uses: Uses, load: NodeJS.Require): Loaded => {
  const prepared = prepare(user, file, uses);
  if (prepared === null) return loadAsUsual(file, load);
  const module = { exports: {} };
  prepared.run(module.exports, load, module, file, dirname(file));
  return { exports: module.exports, keepCode: prepared.keepCode };
};

const loadAsUsual = (file: string, load: NodeJS.Require): Loaded => ({ exports: load(file), keepCode: () => {} });

interface Prepared {
  readonly run: (exports: object, require: NodeJS.Require, module: object, filename: string, dirname: string) => void;
  readonly keepCode: () => void;
}

const prepare = (user: User | null, file: string, { use, built }: Uses): Prepared | null => {
  try {
    const text = readFileSync(file);
    const nameOf = nameFor(file, text);
    // The user's code fits the run better, and exists if V8 has rejected the code beside the bundle.
    const kept = user === null ? undefined : readKept(user, nameOf(use));
    const cachedData = kept ?? (built === null ? undefined : readBuilt(file, nameOf(built)));
    if (cachedData === undefined && user === null) return null;
    const script = new Script(sourceOf(text), { filename: file, columnOffset: -WRAPPER[0].length, cachedData });
    const isUsed = cachedData !== undefined && script.cachedDataRejected !== true;
    const keepCode = isUsed || user === null ? () => {} : keeper(script, user, nameOf(use));
    return { run: script.runInThisContext() as Prepared['run'], keepCode };
  } catch {
    // For example, the file cannot be read. Loading the file as usual reports the fault.
    return null;
  }
};

/** Returns a function that returns the name of the file with the code for a use. V8 rejects code of another version or with other flags. */
const nameFor = (file: string, text: Buffer): ((use: string) => string) => {
  const checksum = crc32(text);
  const { NODE_OPTIONS: options } = process.env;
  return (use) => {
    const circumstances = JSON.stringify([use, process.version, process.arch, process.execArgv, options]);
    return `${basename(file, '.cjs')}-${crc32(circumstances, checksum).toString(16)}`;
  };
};

const readKept = (user: User, name: string): Buffer | undefined => {
  const folder = openCacheFolder(user, { create: false });
  return folder === null ? undefined : readCode(join(folder, name), { uid: user.uid, forbidden: OF_OTHERS });
};

/** Reads the code beside the bundle. The code needs the owner of the bundle, because that user decides what the program runs anyway. */
const readBuilt = (file: string, name: string): Buffer | undefined =>
  readCode(join(dirname(file), name), { uid: statSync(file).uid, forbidden: TO_WRITE });

/** Returns the text with its wrapper. Text in ASCII, as written by the build, needs no decoding, and stays outside of V8's heap. */
const sourceOf = (text: Buffer): string => {
  const source = Buffer.concat([Buffer.from(WRAPPER[0]), text, Buffer.from(WRAPPER[1])]);
  return isAscii(source) ? source.toString('latin1') : source.toString();
};

/** Returns a function that keeps the compiled functions at its first call. Otherwise they are kept when the process ends without an error. */
const keeper = (script: Script, user: User, name: string): (() => void) => {
  const keep = (): void => {
    process.off('exit', keepAtExit);
    try {
      const folder = openCacheFolder(user, { create: true });
      if (folder !== null) writeCode(join(folder, name), script.createCachedData());
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
