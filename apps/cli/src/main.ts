// The executable `tunnel`. Prints its version immediately, before the client is loaded. For all other arguments, runs the program and
// ends the process with its exit code.
import { VERSION } from './io/io.ts';

const IS_VERSION = /^(--version|-V)$/;

// If the reader closes stdout, the program ends quietly and without an error.
const stdoutClosed = new Promise<void>((resolve) => process.stdout.on('error', () => resolve()));
process.stderr.on('error', () => {});

const args = process.argv.slice(2);

if (args.length === 1 && IS_VERSION.test(args[0] ?? '')) process.stdout.write(`${VERSION}\n`);
else {
  const { runInProcess } = await import('./run-in-process.ts');
  const exitCode = await runInProcess(args, stdoutClosed);
  // The program has closed everything in order. A forgotten handle must not keep the process running.
  process.exit(exitCode);
}
