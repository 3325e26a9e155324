// Runs any command of `tunnel` in this process. Each command loads its code on demand.
import { run } from './all-commands.ts';
import { type Program, runInProcess } from './run-in-process.ts';

const PROGRAM: Program = { run, connect: async (options) => (await import('@tunnel/client')).connect(options) };

export const runAnyCommand = (args: readonly string[], stdoutClosed: Promise<void>): Promise<number> =>
  runInProcess(PROGRAM, args, stdoutClosed);
