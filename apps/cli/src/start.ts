// Starts the program for both of its entries, the bundle and the single executable. The version is printed at once, before the client is
// loaded. For any other arguments the process ends with the exit code of the command.
import { VERSION } from './io/io.ts';

const IS_VERSION = /^(--version|-V)$/;

export const start = async (args: readonly string[]): Promise<void> => {
  // If the reader closes stdout, the program ends without an error message.
  const stdoutClosed = new Promise<void>((resolve) => process.stdout.on('error', () => resolve()));
  process.stderr.on('error', () => {});
  if (args.length === 1 && IS_VERSION.test(args[0] ?? '')) {
    process.stdout.write(`${VERSION}\n`);
    return;
  }
  const { runInProcess } = await import('./run-in-process.ts');
  const exitCode = await runInProcess(args, stdoutClosed);
  // The command has closed everything by now. A forgotten handle must not keep the process alive.
  process.exit(exitCode);
};
