// Runs a program's main function inside the test's process, and shows it to the test as a program: lines, exit code, signals.
import { EventEmitter } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { OutputLines } from './output-lines.ts';
import { type Program, type ProgramExit, wrapProgram } from './program.ts';

/** The streams and signals of a program that has no process of its own. */
export interface InProcessStreams {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly signals: EventEmitter;
  /** Ends the program there and then, as process.exit does; what it still has running is for `endNow` to close. */
  exit(code: number): void;
}

export interface InProcessRun {
  readonly describe: string;
  /** Settles with the exit code. */
  readonly main: (streams: InProcessStreams) => Promise<number>;
  /** Makes `main` settle soon, whatever is still open. */
  readonly endNow: (streams: InProcessStreams) => void;
  /**
   * SIGKILL, as others see it: connections break without a goodbye, and files stay as they were at that moment. Settles when nothing of the
   * program is left. Without it the program cannot be killed.
   */
  readonly kill?: (streams: InProcessStreams, ended: Promise<unknown>) => Promise<void>;
  /** SIGSTOP and SIGCONT, as others see them: nothing is due in the program while it stands still. */
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

/** Signals that the kernel carries out by itself. */
const UNHEARD: ReadonlySet<NodeJS.Signals> = new Set(['SIGKILL', 'SIGSTOP', 'SIGCONT']);
