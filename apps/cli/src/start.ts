// Starts the program for all of its entries: the bundles and the single executable. The version is printed at once, before the commands are
// loaded. For any other arguments the process ends with the exit code of the command.
import { VERSION } from './io/io.ts';

const IS_VERSION = /^(--version|-V)$/;

/** Runs a command and returns the exit code. `stdoutClosed` resolves when the reader of stdout has closed the pipe. */
type Run = (args: readonly string[], stdoutClosed: Promise<void>) => Promise<number>;

export const start = async (args: readonly string[], load: () => Promise<Run>): Promise<void> => {
  // If the reader closes stdout, the program ends without an error message.
  const stdoutClosed = new Promise<void>((resolve) => process.stdout.on('error', () => resolve()));
  process.stderr.on('error', () => {});
  if (args.length === 1 && IS_VERSION.test(args[0] ?? '')) {
    process.stdout.write(`${VERSION}\n`);
    return;
  }
  const run = await load();
  const exitCode = await run(args, stdoutClosed);
  // The command has closed everything by now. A forgotten handle must not keep the process alive.
  process.exit(exitCode);
};
