// Stop requests to a long-running command: Ctrl-C, a signal, a closed stdout, or a call. Also has a pause that a stop request ends.
import { onSignals } from '@tunnel/runtime';
import { type ExitCode, exitCodeOfSignal } from './exit-codes.ts';
import type { Io } from './io.ts';

export interface Stop {
  /** Aborts on the first signal, when the reader of stdout has closed the pipe, or when `ask` is called. */
  readonly asked: AbortSignal;
  ask(): void;
  /** Resolves on a second signal. */
  readonly atOnce: Promise<ExitCode>;
}

/** Time in which a repeated signal counts as the same signal. Under npm, one Ctrl-C arrives twice. */
const SAME_SIGNAL_WITHIN_MS = 1000;

/** Listens for stop requests, for a command that needs time to end. */
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

/**
 * Listens for a stop request, for a command that only shows output and prints nothing afterwards. Erases the `^C` that the terminal has
 * echoed.
 */
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
