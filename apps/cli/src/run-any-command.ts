// Runs any command of `tunnel` in this process. Each command loads its code on demand.
import { run } from './all-commands.ts';
import { runInProcess } from './run-in-process.ts';

export const runAnyCommand =
  (keepCode: () => void) =>
  (args: readonly string[], stdoutClosed: Promise<void>): Promise<number> =>
    runInProcess(
      { run, connect: async (options) => (await import('@tunnel/client')).connect(options), keepCode },
      args,
      stdoutClosed,
    );
