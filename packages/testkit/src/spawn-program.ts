// Runs a program for a test: its lines are kept, its exit can be awaited, and close() leaves no process of it behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { OutputLines } from './output-lines.ts';

export interface ProgramOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** Laid over the environment of the test; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Program {
  readonly pid: number;
  /** Lines so far. */
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
  readonly exit: ProgramExit | null;
  /** The first line of either stream that matches, printed already or to come; rejects at an exit without it. */
  waitForLine(pattern: RegExp, options?: { timeoutMs?: number }): Promise<RegExpExecArray>;
  waitForExit(options?: { timeoutMs?: number }): Promise<ProgramExit>;
  /** To the program alone. */
  signal(signal: NodeJS.Signals): void;
  /** To the program and all it started, as a terminal does. */
  signalGroup(signal: NodeJS.Signals): void;
  write(text: string): void;
  close(): Promise<void>;
}

/** Two busy cores start a program in a second or two, ten of them at once in several. */
const PATIENCE_MS = 60_000;

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
  let exit: ProgramExit | null = null;
  const exited = new Promise<ProgramExit>((resolve) => {
    // 'close', not 'exit': by then the last lines have been read.
    child.once('close', (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  const pid = await started(child);
  running.add(pid);
  void exited.then(() => running.delete(pid));
  const describe = `${options.command} ${(options.args ?? []).join(' ')}`;

  return {
    pid,
    stdout: lines.stdout,
    stderr: lines.stderr,
    get exit() {
      return exit;
    },
    waitForLine: async (pattern, { timeoutMs = PATIENCE_MS } = {}) => {
      const { found, giveUp } = lines.waitFor(pattern);
      const early = exited.then(({ code }): never => {
        throw new Error(`${describe} ended with ${code} before ${pattern}:\n${lines.tail()}`);
      });
      early.catch(() => {});
      try {
        return await withDeadline(
          Promise.race([found, early]),
          timeoutMs,
          () => `no ${pattern} from ${describe}:\n${lines.tail()}`,
        );
      } finally {
        giveUp();
      }
    },
    waitForExit: ({ timeoutMs = PATIENCE_MS } = {}) =>
      withDeadline(exited, timeoutMs, () => `${describe} did not end:\n${lines.tail()}`),
    signal: (signal) => void child.kill(signal),
    signalGroup: (signal) => signalGroup(pid, signal),
    write: (text) => void child.stdin.write(text),
    close: async () => {
      signalGroup(pid, 'SIGKILL');
      await exited;
    },
  };
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

const withDeadline = async <T>(promise: Promise<T>, timeoutMs: number, message: () => string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${timeoutMs} ms: ${message()}`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
};
