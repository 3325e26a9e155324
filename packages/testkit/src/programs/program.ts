// A program under test: its output lines, its exit, and signals. The program is a separate process or runs inside the test's process.
import type { OutputLines } from './output-lines.ts';

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Program {
  /** Process id. Throws for a program inside the test's process, because a signal to this process would end the test run. */
  readonly pid: number;
  /** Lines printed to stdout so far. */
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
  readonly exit: ProgramExit | null;
  /**
   * Resolves with the first matching line of either stream, already printed or still to come. Rejects if the program exits without a
   * match.
   */
  waitForLine(pattern: RegExp, options?: { timeoutMs?: number }): Promise<RegExpExecArray>;
  waitForExit(options?: { timeoutMs?: number }): Promise<ProgramExit>;
  /** Sends a signal to the program only. */
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal to the program and its child processes, like a terminal. */
  signalGroup(signal: NodeJS.Signals): void;
  write(text: string): void;
  close(): Promise<void>;
}

/**
 * Default time limit for program output and exits. On two busy cores, one program starts within two seconds, but ten concurrent programs
 * take several seconds.
 */
const PATIENCE_MS = 60_000;

interface ProgramParts extends Pick<Program, 'signal' | 'signalGroup' | 'write' | 'close'> {
  /** Command line of the program, for messages of failed tests. */
  readonly describe: string;
  /** Process id, or null for a program inside the test's process. */
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
