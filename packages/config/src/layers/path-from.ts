// What a path in a file or on a command line means. Apart from the schema: whoever only follows a path need not load that.
import { join, resolve } from 'node:path';

/** Where a path in config.yml or on the command line leads, seen from `folder`; `~/` means the home folder, as in a shell. */
export const pathFrom = (folder: string, path: string, home: string): string =>
  path.startsWith('~/') ? join(home, path.slice(2)) : resolve(folder, path);
