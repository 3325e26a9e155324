// Runs a program for a test: its lines are kept, its exit can be awaited, and close() leaves no process of it behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { OutputLines } from './output-lines.ts';
import { type Program, type ProgramExit, wrapProgram } from './program.ts';

export interface ProgramOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** Laid over the environment of the test; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** Whatever ends the tests, no program outlives them. One listener for all: a test may run many at once. */
const running = new Set<number>();
process.once('exit', () => running.forEach((pid) => signalGroup(pid, 'SIGKILL')));

/** Each program leads a process group of its own, so that close() also reaches what it started. */
export const spawnProgram = async (options: ProgramOptions): Promise<Program> => {
  const child = spawn(options.command, options.args ?? [], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    detached: true,
  });
  const lines = new OutputLines();
  lines.collect(child.stdout, 'stdout');
  lines.collect(child.stderr, 'stderr');
  // A program that left early makes writes to it fail; its exit says more than that.
  child.stdin.on('error', () => {});
  const exited = new Promise<ProgramExit>((resolve) => {
    // 'close', not 'exit': by then the last lines have been read.
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
    // ESRCH: all of them are gone already.
  }
};
