// Resolves paths from files and command lines. A separate module, so that code that only resolves paths does not load the config schema.
import { join, resolve } from 'node:path';

/** Resolves a path from config.yml or the command line against `folder`. `~/` means the home folder, as in a shell. */
export const pathFrom = (folder: string, path: string, home: string): string =>
  path.startsWith('~/') ? join(home, path.slice(2)) : resolve(folder, path);
