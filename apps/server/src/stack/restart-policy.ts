// When a part that ended unexpectedly starts again, and when its ends deserve a loud log line. Pure: time is an argument.

export interface RestartState {
  /** When the part ended within the last minute, oldest first; no more ends than the rules count. */
  readonly endedAt: readonly number[];
  /** The loud line was logged, and the part has not come to rest since. */
  readonly isToldOf: boolean;
}

interface Restart {
  readonly state: RestartState;
  readonly delayMs: number;
  /** The part does not stay up: an operator has to look. */
  readonly isLoud: boolean;
}

export const RESTART_BOUNDS = {
  /** Ends are counted over this time. Older ends are forgotten, however short the part lived each time. */
  WITHIN_MS: 60_000,
  /**
   * The pause after the first, the second, … end within a minute; the last pause is for all further ends. One or two crashes are no pattern, so the
   * part starts at once. From the third on the pause grows, so that a part that cannot run costs little processor time.
   */
  DELAYS_MS: [0, 0, 500, 1000, 2000, 2000, 2000, 2000, 2000, 5000],
  /** This many ends within a minute are logged loudly, once. */
  LOUD_ENDS: 5,
} as const;

export const UNTRIED: RestartState = { endedAt: [], isToldOf: false };

export const afterEnd = (state: RestartState, now: number): Restart => {
  const { DELAYS_MS, LOUD_ENDS, WITHIN_MS } = RESTART_BOUNDS;
  const recent = state.endedAt.filter((at) => at > now - WITHIN_MS);
  const endedAt = [...recent, now].slice(-DELAYS_MS.length);
  const isRestless = endedAt.length >= LOUD_ENDS;
  return {
    state: { endedAt, isToldOf: isRestless },
    delayMs: DELAYS_MS[endedAt.length - 1] ?? 0,
    isLoud: isRestless && !state.isToldOf,
  };
};
