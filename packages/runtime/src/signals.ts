// Signals of one process: the first asks for an orderly end, a later one for an end at once.
import { type Clock, systemClock } from './clock.ts';

export interface SignalOptions {
  readonly signals: readonly NodeJS.Signals[];
  /** Under npm one Ctrl-C arrives twice: signals within this time of the first are the same one. */
  readonly sameWithinMs: number;
  readonly onFirst: (signal: NodeJS.Signals) => void;
  readonly onSecond: (signal: NodeJS.Signals) => void;
  readonly clock?: Pick<Clock, 'monotonic'>;
  /** Where the signals come from; the process itself unless told. */
  readonly source?: SignalSource;
}

export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/** For the rest of the process's life: were it to stop listening before its end, a late repeat would kill it there. */
export const onSignals = (options: SignalOptions): void => {
  const clock = options.clock ?? systemClock;
  const source = options.source ?? process;
  let firstAt: number | undefined;
  let secondSeen = false;

  const listener = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = clock.monotonic();
      options.onFirst(signal);
    } else if (!secondSeen && clock.monotonic() - firstAt > options.sameWithinMs) {
      secondSeen = true;
      options.onSecond(signal);
    }
  };

  for (const signal of options.signals) source.on(signal, listener);
};
