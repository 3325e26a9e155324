// When a part that ended unexpectedly starts again, and when that is worth a loud line. Pure: time is an argument.

export interface RestartState {
  /** Ends since the part last lived long enough. */
  readonly tries: number;
  /** When it ended within the last minute, oldest first; never more than are counted. */
  readonly endedAt: readonly number[];
  /** The loud line was said, and the part has not come to rest since. */
  readonly isToldOf: boolean;
}

interface PartEnded {
  readonly now: number;
  /** From its launch on. */
  readonly livedMs: number;
}

interface Restart {
  readonly state: RestartState;
  readonly delayMs: number;
  /** It does not stay up: an operator has to look. */
  readonly isLoud: boolean;
}

export const RESTART_BOUNDS = {
  /** At once, since one crash is no pattern; then ever later, so that a part that cannot live costs little. */
  DELAYS_MS: [0, 200, 500, 1000, 2000, 5000],
  /** A part that lived so long starts anew at once. */
  LIVED_MS: 60_000,
  /** So many ends within a minute are told loudly, once. */
  LOUD_ENDS: 5,
  LOUD_WITHIN_MS: 60_000,
} as const;

export const UNTRIED: RestartState = { tries: 0, endedAt: [], isToldOf: false };

export const afterEnd = (state: RestartState, { now, livedMs }: PartEnded): Restart => {
  const { DELAYS_MS, LIVED_MS, LOUD_ENDS, LOUD_WITHIN_MS } = RESTART_BOUNDS;
  const tries = livedMs >= LIVED_MS ? 0 : state.tries;
  const recent = state.endedAt.filter((at) => at > now - LOUD_WITHIN_MS);
  const endedAt = [...recent, now].slice(-LOUD_ENDS);
  const isRestless = endedAt.length === LOUD_ENDS;
  return {
    state: { tries: Math.min(tries + 1, DELAYS_MS.length - 1), endedAt, isToldOf: isRestless },
    delayMs: DELAYS_MS[tries] ?? 0,
    isLoud: isRestless && !state.isToldOf,
  };
};
