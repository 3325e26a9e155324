// The list of commands and the version, as a bundle without the code of any command.
import { runCommand } from './command-list.ts';
import { runInProcess } from './run-in-process.ts';
import { start } from './start.ts';

export const main = (args: readonly string[], keepCode: () => void): Promise<void> =>
  start(
    args,
    async () => (words, stdoutClosed) =>
      runInProcess(
        { run: (rest, io) => runCommand(rest, io, () => undefined), connect: async () => neverReturn(), keepCode },
        words,
        stdoutClosed,
      ),
  );

const neverReturn = (): never => {
  throw new Error('the list of commands connects to nothing');
};
