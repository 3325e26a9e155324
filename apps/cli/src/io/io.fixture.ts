// The Io of a run under test: what it prints is kept, signals are sent by hand, the home folder is the test's.
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { connect } from '@tunnel/client';
import { type Clock, systemClock } from '@tunnel/runtime';
import type { Io, TextInput } from './io.ts';

export interface TestIo extends Io {
  readonly out: () => string;
  readonly err: () => string;
  /** Lines of stdout as JSON events. */
  readonly events: () => Record<string, unknown>[];
  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void;
  closeStdout(): void;
}

export interface TestIoOptions {
  readonly home: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly connect?: typeof connect;
  readonly clock?: Clock;
  readonly isTTY?: boolean;
  /** What comes on stdin; nothing unless told. */
  readonly stdin?: TextInput;
  readonly columns?: number;
}

/** A person who types this, as fast as it is read. */
export const typing = (text: string): TextInput => Object.assign(piping(text), { isTTY: true });

export const piping = (text: string | Buffer): PassThrough => {
  const input = new PassThrough();
  input.end(text);
  return input;
};

export const makeTestIo = (options: TestIoOptions): TestIo => {
  let out = '';
  let err = '';
  const signals = new EventEmitter();
  let closeStdout: () => void = () => {};
  const stdoutClosed = new Promise<void>((resolve) => {
    closeStdout = resolve;
  });
  return {
    stdin: options.stdin ?? piping(''),
    stdout: {
      write: (text) => {
        out += text;
      },
      isTTY: options.isTTY,
      columns: options.columns ?? 100,
    },
    stderr: {
      write: (text) => {
        err += text;
      },
    },
    stdoutClosed,
    beforeCrash: () => {},
    // Also what goes into the temporary folder stays with the test.
    env: { TMPDIR: options.home, ...options.env },
    home: options.home,
    hostName: 'test-computer',
    cwd: options.home,
    clock: options.clock ?? systemClock,
    signals,
    connect: options.connect ?? connect,
    out: () => out,
    err: () => err,
    events: () =>
      out
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    signal: (name) => void signals.emit(name, name),
    closeStdout: () => closeStdout(),
  };
};
