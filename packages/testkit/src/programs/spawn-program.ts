// Runs a program for a test as a separate process. The output lines are stored, the exit can be awaited, and close() leaves no processes
// behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { OutputLines } from './output-lines.ts';
import { type Program, type ProgramExit, wrapProgram } from './program.ts';

export interface ProgramOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** Environment variables on top of the test's environment. A value of undefined removes the variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/**
 * Process ids of the running programs. All are killed when the test process exits, so that no program outlives the tests. One exit
 * listener serves all programs, because a test may run many programs at once.
 */
const running = new Set<number>();
process.once('exit', () => running.forEach((pid) => signalGroup(pid, 'SIGKILL')));

/** Starts a program as the leader of a separate process group, so that close() also kills its child processes. */
export const spawnProgram = async (options: ProgramOptions): Promise<Program> => {
  const child = spawn(options.command, options.args ?? [], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    detached: true,
  });
  const lines = new OutputLines();
  lines.collect(child.stdout, 'stdout');
  lines.collect(child.stderr, 'stderr');
  // Writing to a program that has exited fails. The exit of the program is the better error.
  child.stdin.on('error', () => {});
  const exited = new Promise<ProgramExit>((resolve) => {
    // Waits for 'close' instead of 'exit', because the last lines have been read by then.
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  const pid = await started(child);
  running.add(pid);
  void exited.then(() => running.delete(pid));
  const describe = `${options.command} ${(options.args ?? []).join(' ')}`;

  return wrapProgram({
    describe,
    pid,
    lines,
    exited,
    signal: (signal) => void child.kill(signal),
    signalGroup: (signal) => signalGroup(pid, signal),
    write: (text) => void child.stdin.write(text),
    close: async () => {
      signalGroup(pid, 'SIGKILL');
      await exited;
    },
  });
};

const started = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => resolve(child.pid as number));
  });

const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: the process group has already ended.
  }
};
