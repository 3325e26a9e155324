// How a command that goes on is told to end: Ctrl-C, a signal, a reader that went away, or a word; and a pause that this ends.
import { onSignals } from '@tunnel/runtime';
import { type ExitCode, exitCodeOfSignal } from './exit-codes.ts';
import type { Io } from './io.ts';

export interface Stop {
  /** Aborted by the first signal, when nobody reads our output any more, or by word. */
  readonly asked: AbortSignal;
  ask(): void;
  /** Settles at a second signal. */
  readonly atOnce: Promise<ExitCode>;
}

/** Under npm one Ctrl-C arrives twice. */
const SAME_SIGNAL_WITHIN_MS = 1000;

/** Of what takes its time to end. */
export const listenForStops = (io: Io): Stop => {
  const asked = new AbortController();
  let endAtOnce: (code: ExitCode) => void = () => {};
  const atOnce = new Promise<ExitCode>((resolve) => {
    endAtOnce = resolve;
  });
  onSignals({
    signals: ['SIGINT', 'SIGTERM'],
    sameWithinMs: SAME_SIGNAL_WITHIN_MS,
    onFirst: () => asked.abort(),
    onSecond: (signal) => endAtOnce(exitCodeOfSignal(signal)),
    clock: io.clock,
    source: io.signals,
  });
  void io.stdoutClosed.then(() => asked.abort());
  return { asked: asked.signal, ask: () => asked.abort(), atOnce };
};

/** Of what just shows something. Nothing of it follows: what the terminal has echoed of Ctrl-C is wiped out. */
export const listenForStop = (io: Io): AbortSignal => {
  const { asked } = listenForStops(io);
  const wipe = (): void => void (io.stdout.isTTY === true && io.stdout.write('\r\u001b[K'));
  asked.addEventListener('abort', wipe, { once: true });
  return asked;
};

export const pause = (ms: number, stop: AbortSignal, io: Pick<Io, 'clock'>): Promise<void> =>
  new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const end = (): void => {
      timer.cancel();
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = io.clock.setTimeout(end, ms);
    stop.addEventListener('abort', end, { once: true });
  });
