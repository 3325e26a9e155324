// The bundles of the program, and the bundle for each command line. No bundle loads another one.
import type { Uses } from '@tunnel/runtime';
import { KIND_NAMES } from './config/kinds.ts';

/**
 * `help` prints the list of commands and the version. `complete` serves shell completion. `publish` has the commands that open tunnels, and
 * `tunnel` has every command.
 */
export type Bundle = 'help' | 'complete' | 'publish' | 'tunnel';

export interface Choice {
  readonly bundle: Bundle;
  /** The part of the bundle that the command line needs, such as the code of one command. Null for a small bundle. */
  readonly uses: Uses | null;
}

/** Commands of the bundle `publish`. */
export const PUBLISHING: readonly string[] = [...KIND_NAMES, 'start'];

/**
 * The command for which the build puts compiled code beside the bundle `publish`. The other commands of the bundle use nearly the same
 * code. Help uses a small part of it, and starts faster with its own code.
 */
const BUILT = 'http';

const ONLY_HELP = new Set(['--help', '-h', 'help', '--version', '-V']);

const ASKS_FOR_HELP = new Set(['--help', '-h']);

export const chooseBundle = (args: readonly string[]): Choice => {
  const [command = ''] = args;
  if (args.length === 1 && ONLY_HELP.has(command)) return { bundle: 'help', uses: null };
  if (command === '__complete') return { bundle: 'complete', uses: null };
  const needsHelp = args.some((arg) => ASKS_FOR_HELP.has(arg));
  const use = needsHelp ? `${command} --help` : command;
  if (!PUBLISHING.includes(command)) return { bundle: 'tunnel', uses: { use, built: null } };
  return { bundle: 'publish', uses: { use, built: needsHelp ? null : BUILT } };
};
