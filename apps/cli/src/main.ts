// The executable tunnel: gives the run its io, and ends the process with its exit code.
import { homedir } from 'node:os';
import { connect } from '@tunnel/client';
import { systemClock } from '@tunnel/runtime';
import { run } from './run.ts';

// A reader that goes away ends the program quietly; it is no error of ours.
const stdoutClosed = new Promise<void>((resolve) => process.stdout.on('error', () => resolve()));
process.stderr.on('error', () => {});

const exitCode = await run(process.argv.slice(2), {
  // Not touched unless somebody reads it: tunnels run without a standard input.
  get stdin() {
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  stdoutClosed,
  env: process.env,
  home: homedir(),
  cwd: process.cwd(),
  clock: systemClock,
  signals: process,
  connect,
});
// Everything was closed in order by now: a handle that someone forgot does not keep the process.
process.exit(exitCode);
