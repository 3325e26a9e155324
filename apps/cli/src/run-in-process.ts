// A run of a program in this process: creates the Io from the process and its environment, and returns the exit code.
import { homedir, hostname } from 'node:os';
import { type Logger, releaseStartMemory, silentLogger, systemClock } from '@tunnel/runtime';
import { knownPlatform } from './api/known-platform.ts';
import type { Io } from './io/io.ts';

/** Time that a finished command waits until a slow reader has read the output. */
const STDOUT_LAST_MS = 1000;

/** A program with some or all commands, and the library function by which it connects. */
export interface Program {
  run(args: readonly string[], io: Io): Promise<number>;
  readonly connect: Io['connect'];
  /** Keeps the compiled code of the program for its next start. */
  readonly keepCode: () => void;
}

/** Runs the program. `stdoutClosed` resolves when the reader of stdout has closed the pipe. */
export const runInProcess = async (
  program: Program,
  args: readonly string[],
  stdoutClosed: Promise<void>,
): Promise<number> => {
  const exitCode = await runOnce(program, args, stdoutClosed);
  // A pipe is written in the background, and ending the process would cut off the output.
  if (process.stdout.writableLength > 0) await Promise.race([stdoutWritten(), stdoutClosed, lastMoment()]);
  return exitCode;
};

/** Resolves with the logger. The code for logs is loaded only for debugging. */
const chooseLogger = async (env: NodeJS.ProcessEnv): Promise<Logger> => {
  if (env['TUNNEL_DEBUG'] !== '1') return silentLogger;
  return (await import('@tunnel/runtime')).createLogger({ level: 'debug', format: 'human', stream: process.stderr });
};

const stdoutWritten = (): Promise<void> => new Promise((resolve) => void process.stdout.write('', () => resolve()));

const lastMoment = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, STDOUT_LAST_MS));

const runOnce = async (program: Program, args: readonly string[], stdoutClosed: Promise<void>): Promise<number> => {
  const io: Io = {
    // Opened only when read, because tunnels run without a standard input.
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    stdoutClosed,
    beforeCrash: (last) => void process.on('uncaughtExceptionMonitor', last),
    env: process.env,
    home: homedir(),
    hostName: hostname(),
    cwd: process.cwd(),
    clock: systemClock,
    logger: await chooseLogger(process.env),
    signals: process,
    connect: async (options) => {
      const client = await program.connect(options);
      releaseStartMemory({ beforeFirst: program.keepCode });
      return client;
    },
    platformUrl: () => knownPlatform(io),
  };
  return program.run(args, io);
};
