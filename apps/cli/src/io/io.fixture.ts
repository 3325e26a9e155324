// The Io of a test run: collects the output, lets the test send signals, and uses the test's home folder.
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { connect } from '@tunnel/client';
import { type Clock, silentLogger, systemClock } from '@tunnel/runtime';
import type { Io, TextInput } from './io.ts';

export interface TestIo extends Io {
  readonly out: () => string;
  readonly err: () => string;
  /** The lines of stdout, parsed as JSON events. */
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
  /** Input on stdin. Empty by default. */
  readonly stdin?: TextInput;
  readonly columns?: number;
  readonly platformUrl?: string;
}

/** A terminal with a person who types the text as fast as the program reads. */
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
    // TMPDIR keeps temporary files inside the test's folder.
    env: { TMPDIR: options.home, ...options.env },
    home: options.home,
    hostName: 'test-computer',
    cwd: options.home,
    clock: options.clock ?? systemClock,
    logger: silentLogger,
    signals,
    connect: options.connect ?? connect,
    platformUrl: () => options.platformUrl ?? null,
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
