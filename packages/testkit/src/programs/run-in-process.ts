// Runs the main function of a program inside the test's process, and presents the run as a program with lines, exit code and signals.
import { EventEmitter } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { OutputLines } from './output-lines.ts';
import { type Program, type ProgramExit, wrapProgram } from './program.ts';

/** Streams and signals of a program without a separate process. */
export interface InProcessStreams {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly signals: EventEmitter;
  /** Ends the program immediately, like process.exit. Work still in progress must be closed by `endNow`. */
  exit(code: number): void;
}

export interface InProcessRun {
  readonly describe: string;
  /** Runs the program and resolves with its exit code. */
  readonly main: (streams: InProcessStreams) => Promise<number>;
  /** Makes `main` end soon, even with open connections or other unfinished work. */
  readonly endNow: (streams: InProcessStreams) => void;
  /**
   * Simulates SIGKILL: connections break without a goodbye, and files stay in their current state. Resolves when all remains of the
   * program are gone. Without this function, the program cannot be killed.
   */
  readonly kill?: (streams: InProcessStreams, ended: Promise<unknown>) => Promise<void>;
  /** Simulates SIGSTOP and SIGCONT: while frozen, no timers of the program fire. */
  readonly freeze?: (isFrozen: boolean) => void;
}

export const runInProcess = ({ describe, main, endNow, kill, freeze }: InProcessRun): Program => {
  const lines = new OutputLines();
  const stdin = new PassThrough();
  const ended = new EventEmitter();
  const streams: InProcessStreams = {
    stdin,
    stdout: lines.writable('stdout'),
    stderr: lines.writable('stderr'),
    signals: new EventEmitter(),
    exit: (code) => void ended.emit('exit', code),
  };
  let killed: Promise<ProgramExit> | null = null;
  const returned = new Promise<number>((resolve, reject) => {
    ended.once('exit', resolve);
    main(streams).then(resolve, reject);
  });
  const exited = returned.then(
    (code): ProgramExit | Promise<ProgramExit> => killed ?? { code, signal: null },
    (error: unknown): ProgramExit | Promise<ProgramExit> => {
      streams.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      return killed ?? { code: 1, signal: null };
    },
  );
  const signal = (name: NodeJS.Signals): void => {
    if (name === 'SIGKILL' && kill !== undefined) {
      lines.close();
      killed ??= kill(streams, Promise.allSettled([returned])).then(() => ({ code: null, signal: name }));
    } else if ((name === 'SIGSTOP' || name === 'SIGCONT') && freeze !== undefined) {
      freeze(name === 'SIGSTOP');
    } else if (UNHEARD.has(name)) {
      throw new Error(`${name} needs a real process: run ${describe} as a program`);
    } else {
      streams.signals.emit(name, name);
    }
  };
  return wrapProgram({
    describe,
    lines,
    exited,
    signal,
    signalGroup: signal,
    pid: null,
    write: (text) => void stdin.write(text),
    close: async () => {
      endNow(streams);
      await exited;
    },
  });
};

/** Signals that the kernel handles without the program's involvement. */
const UNHEARD: ReadonlySet<NodeJS.Signals> = new Set(['SIGKILL', 'SIGSTOP', 'SIGCONT']);
