// One run of the program in this process: the world around it as its io, and its exit code.
import { homedir, hostname } from 'node:os';
import { connect } from '@tunnel/client';
import { systemClock } from '@tunnel/runtime';
import { run } from './run.ts';

/** `stdoutClosed` settles when nobody reads stdout any more. */
export const runInProcess = (args: readonly string[], stdoutClosed: Promise<void>): Promise<number> =>
  run(args, {
    // Not touched unless somebody reads it: tunnels run without a standard input.
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    stdoutClosed,
    env: process.env,
    home: homedir(),
    hostName: hostname(),
    cwd: process.cwd(),
    clock: systemClock,
    signals: process,
    connect,
  });
