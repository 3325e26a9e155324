// Decides when a part that ended unexpectedly restarts, and when its exits deserve a prominent log line. Pure functions: time is an
// argument.

export interface RestartState {
  /** Times at which the part ended within the last minute, oldest first. Contains at most as many times as there are restart delays. */
  readonly endedAt: readonly number[];
  /** True if the prominent line was logged, and the part has not been stable since. */
  readonly isToldOf: boolean;
}

interface Restart {
  readonly state: RestartState;
  readonly delayMs: number;
  /** True if the part exits repeatedly, so that the operator has to investigate. */
  readonly isLoud: boolean;
}

export const RESTART_BOUNDS = {
  /** Time span over which exits are counted. Older exits are forgotten, however short each run was. */
  WITHIN_MS: 60_000,
  /**
   * Pause before the restart after the first, the second, … exit within a minute. The last pause applies to all further exits. One or two
   * crashes are no pattern, so the part restarts immediately. From the third exit on the pause grows, so that a part that cannot run uses
   * little processor time.
   */
  DELAYS_MS: [0, 0, 500, 1000, 2000, 2000, 2000, 2000, 2000, 5000],
  /** Number of exits within a minute after which a prominent line is logged, once. */
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
