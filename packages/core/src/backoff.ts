// When to try again: exponential, each delay drawn from the upper half of its range, so that clients cut off together do
// not come back together and nobody comes back at once.
// The row of failures is forgotten only after a stable while: a link that flaps must not be hammered.

export interface BackoffRules {
  readonly minMs: number;
  readonly maxMs: number;
  readonly stableAfterMs: number;
}

export interface BackoffState {
  readonly failures: number;
  readonly connectedAt: number | null;
}

export const CALM: BackoffState = { failures: 0, connectedAt: null };

export const afterConnect = (state: BackoffState, now: number): BackoffState => ({ ...state, connectedAt: now });

/** An attempt failed, or a connection was lost. `random` in [0, 1). */
export const afterFailure = (
  state: BackoffState,
  now: number,
  random: number,
  rules: BackoffRules,
): { readonly state: BackoffState; readonly delayMs: number } => {
  const wasStable = state.connectedAt !== null && now - state.connectedAt >= rules.stableAfterMs;
  const failures = wasStable ? 0 : state.failures;
  const ceilingMs = Math.min(rules.maxMs, 2 * rules.minMs * 2 ** Math.min(failures, 30));
  const delayMs = Math.round((ceilingMs / 2) * (1 + random));
  return { state: { failures: failures + 1, connectedAt: null }, delayMs };
};
