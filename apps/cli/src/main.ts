// The executable tunnel. What has to be there at once, its version and words for a shell that completes, is answered before the client is
// loaded; all else is a run of the program, which ends the process with its exit code.
import { homedir } from 'node:os';
import { VERSION } from './io.ts';

const IS_VERSION = /^(--version|-V)$/;

// A reader that goes away ends the program quietly; it is no error of ours.
const stdoutClosed = new Promise<void>((resolve) => process.stdout.on('error', () => resolve()));
process.stderr.on('error', () => {});

const [first = '', ...rest] = process.argv.slice(2);

if (IS_VERSION.test(first) && rest.length === 0) process.stdout.write(`${VERSION}\n`);
else if (first === '__complete') {
  const { complete } = await import('./completion/complete.ts');
  complete(rest, { env: process.env, home: homedir(), cwd: process.cwd(), stdout: process.stdout });
} else {
  const { runInProcess } = await import('./run-in-process.ts');
  const exitCode = await runInProcess(process.argv.slice(2), stdoutClosed);
  // Everything was closed in order by now: a handle that someone forgot does not keep the process.
  process.exit(exitCode);
}
