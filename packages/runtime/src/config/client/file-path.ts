// Where a path in config.yml or on the command line leads.
import { join, resolve } from 'node:path';

/** Seen from `folder`; `~/` means the home folder, as in a shell. */
export const pathFrom = (folder: string, path: string, home: string): string =>
  path.startsWith('~/') ? join(home, path.slice(2)) : resolve(folder, path);
