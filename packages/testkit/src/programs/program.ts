// A program as a test sees it: its lines, its exit, and signals to it. It may be a process of its own or run inside the test's process.
import type { OutputLines } from './output-lines.ts';

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Program {
  /** Throws for a program inside the test's process: a signal to the pid of that process would end the test run. */
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

interface ProgramParts extends Pick<Program, 'signal' | 'signalGroup' | 'write' | 'close'> {
  /** The command line, for messages of failed tests. */
  readonly describe: string;
  /** Null: the program runs inside the test's process. */
  readonly pid: number | null;
  readonly lines: OutputLines;
  readonly exited: Promise<ProgramExit>;
}

export const wrapProgram = ({ describe, pid, lines, exited, ...calls }: ProgramParts): Program => {
  let exit: ProgramExit | null = null;
  void exited.then((ended) => {
    exit = ended;
  });
  return {
    ...calls,
    get pid() {
      if (pid === null) throw new Error(`a pid needs a real process: run ${describe} as a program`);
      return pid;
    },
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
  };
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
