// Every command of `tunnel`, as a bundle.
import { runAnyCommand } from './run-any-command.ts';
import { start } from './start.ts';

export const main = (args: readonly string[], keepCode: () => void): Promise<void> =>
  start(args, async () => runAnyCommand(keepCode));
