// The commands that open tunnels, as a separate bundle with little other code, because V8 keeps the text of a bundle in memory.
import { connect } from '@tunnel/client';
import { type LoaderOf, runCommand } from './command-list.ts';
import { publishCommand } from './commands/publish.ts';
import { startCommand } from './commands/start.ts';
import { KIND_NAMES } from './config/kinds.ts';
import { type Program, runInProcess } from './run-in-process.ts';
import { start } from './start.ts';

const loaderOf: LoaderOf = (name) => {
  if (name === 'start') return async () => startCommand;
  const kind = KIND_NAMES.find((one) => one === name);
  return kind === undefined ? undefined : async () => publishCommand(kind);
};

export const main = (args: readonly string[], keepCode: () => void): Promise<void> => {
  const program: Program = { run: (words, io) => runCommand(words, io, loaderOf), connect, keepCode };
  return start(args, async () => (words, stdoutClosed) => runInProcess(program, words, stdoutClosed));
};
