// The executable tunnel. Its version is there at once, before the client is loaded; all else is a run of the program, which ends the
// process with its exit code.
import { VERSION } from './io/io.ts';

const IS_VERSION = /^(--version|-V)$/;

// A reader that goes away ends the program quietly; it is no error of ours.
const stdoutClosed = new Promise<void>((resolve) => process.stdout.on('error', () => resolve()));
process.stderr.on('error', () => {});

const args = process.argv.slice(2);

if (args.length === 1 && IS_VERSION.test(args[0] ?? '')) process.stdout.write(`${VERSION}\n`);
else {
  const { runInProcess } = await import('./run-in-process.ts');
  const exitCode = await runInProcess(args, stdoutClosed);
  // Everything was closed in order by now: a handle that someone forgot does not keep the process.
  process.exit(exitCode);
}
