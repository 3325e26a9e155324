// The commands that open tunnels, as a separate bundle. In a bundle with all commands, the code that several commands share is in dozens of
// small files, and loading the files takes longer than connecting. bin/tunnel.mjs chooses this bundle for the commands listed here.
import { connect } from '@tunnel/client';
import { type LoaderOf, runCommand } from './command-list.ts';
import { KIND_NAMES, publishCommand } from './commands/publish.ts';
import { startCommand } from './commands/start.ts';
import { type Program, runInProcess } from './run-in-process.ts';
import { start } from './start.ts';

const loaderOf: LoaderOf = (name) => {
  if (name === 'start') return async () => startCommand;
  const kind = KIND_NAMES.find((one) => one === name);
  return kind === undefined ? undefined : async () => publishCommand(kind);
};

const PROGRAM: Program = { run: (args, io) => runCommand(args, io, loaderOf), connect };

await start(process.argv.slice(2), async () => (args, stdoutClosed) => runInProcess(PROGRAM, args, stdoutClosed));
