// One run of the program in this process: the world around it as its io, and its exit code.
import { homedir, hostname } from 'node:os';
import { releaseStartMemory, systemClock } from '@tunnel/runtime';
import type { Io } from './io/io.ts';

/** how long the end of a command waits for a slow reader of what it has written */
const STDOUT_LAST_MS = 1000;

/** `stdoutClosed` settles when nobody reads stdout any more. */
export const runInProcess = async (args: readonly string[], stdoutClosed: Promise<void>): Promise<number> => {
  const exitCode = await runOnce(args, stdoutClosed);
  // A pipe is written in the background, and the end of the process would cut it off.
  if (process.stdout.writableLength > 0) await Promise.race([stdoutWritten(), stdoutClosed, lastMoment()]);
  return exitCode;
};

const stdoutWritten = (): Promise<void> => new Promise((resolve) => void process.stdout.write('', () => resolve()));

const lastMoment = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, STDOUT_LAST_MS));

const runOnce = async (args: readonly string[], stdoutClosed: Promise<void>): Promise<number> => {
  const io: Io = {
    // Not touched unless somebody reads it: tunnels run without a standard input.
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
    signals: process,
    connect: async (options) => {
      const client = await (await import('@tunnel/client')).connect(options);
      releaseStartMemory();
      return client;
    },
  };
  if (args[0] !== 'mcp') return (await import('./all-commands.ts')).run(args, io);
  // A host waits for the list of tools before it shows anything: the other commands would take longer to load than it may take to answer.
  const [{ runProgram }, { mcpCommand }] = await Promise.all([import('./program.ts'), import('./commands/mcp.ts')]);
  return runProgram(args, io, [['Models:', [mcpCommand]]]);
};
