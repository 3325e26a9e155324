import { MUX_LIMITS } from '../limits.ts';
// Decides when the UDP path is used: between client and edge instead of the carriers, or between two peers instead of the relay. The path is
// probed, proven in both directions, used while it answers, abandoned when it is silent, and retried. Times are monotonic, so that a change of the
// system clock has no effect.
//
//   off ─ started ─► probing ─ an answer ─► up ◄─ an answer ─ doubtful
//                     │   ▲                  └─ nothing answered for a while ─► │
//          3 tries over   └─ retry, addresses-changed, heard ─ down ◄─ still nothing
//
// An answer is an authenticated packet that echoes our probe or ping, so it proves both directions at once. Any other packet proves only the
// receiving direction. Sending proves nothing.

export type PathState =
  | { readonly kind: 'off' }
  | {
      readonly kind: 'probing';
      /** Start time of this attempt. Can be in the future, so that two peers start at the same time. */
      readonly triedAt: number;
      /** Number of the probing attempt in the current round, starting with 1. */
      readonly attempt: number;
      readonly nextProbeAt: number;
      readonly history: PathHistory;
    }
  | {
      readonly kind: 'up';
      readonly since: number;
      readonly answeredAt: number;
      /** True if data was sent on the UDP path since the last answer. */
      readonly isInUse: boolean;
      readonly history: PathHistory;
    }
  | {
      readonly kind: 'doubtful';
      readonly since: number;
      readonly pings: number;
      readonly nextPingAt: number;
      readonly giveUpAt: number;
      readonly history: PathHistory;
    }
  | { readonly kind: 'down'; readonly retryAt: number; readonly history: PathHistory };

interface PathHistory {
  /** Consecutive rounds that failed, or that led to a path which lasted only a moment. */
  readonly failures: number;
  /** Why the UDP path was not used last time. Null if no round of probes has completed yet. */
  readonly verdict: 'no-answer' | 'went-silent' | null;
}

/** Why the fallback (carrier or relay) is used. Empty if the path is used. The owner may replace `no-answer` by a more specific reason. */
export type PathReason = '' | 'off' | 'probing' | 'no-answer' | 'went-silent';

export type PathEvent =
  /**
   * The path is available, or the other side starts probing; both sides should probe at the same time. `beginAfterMs` is half a round trip
   * of the fallback.
   */
  | { readonly kind: 'started'; readonly beginAfterMs: number }
  /** An authenticated packet arrived on the path. `isAnswer` is true for an answer to our probe or ping. */
  | { readonly kind: 'heard'; readonly isAnswer: boolean }
  /** Data is sent on the path. Reported only while `wantsUse` returns true, not for every datagram. */
  | { readonly kind: 'used' }
  | { readonly kind: 'tick' }
  /** The IP addresses of this machine changed, so the UDP path may have changed as well. */
  | { readonly kind: 'addresses-changed' }
  | { readonly kind: 'switched-off' };

export type PathEffect =
  /** Send a probe for the UDP path to every possible address of the other side. */
  | { readonly kind: 'send-probe' }
  /** Send a ping on the UDP path in use, to check that it still works. */
  | { readonly kind: 'send-ping' }
  | { readonly kind: 'use' }
  /** Stop using the UDP path and return to the fallback (carrier or relay) immediately. */
  | { readonly kind: 'leave'; readonly reason: PathReason }
  /** Request a timer tick for the path machine at this time. Replaces an earlier request. */
  | { readonly kind: 'wake'; readonly at: number };

export type PathStep = readonly [PathState, readonly PathEffect[]];

export const PATH_OFF: PathState = { kind: 'off' };

const FRESH: PathHistory = { failures: 0, verdict: null };

const LIMITS = MUX_LIMITS;

export const isPathUsed = (state: PathState): boolean => state.kind === 'up' || state.kind === 'doubtful';

/** Returns true if the owner must report the next time that data is sent on the path. */
export const wantsUse = (state: PathState): boolean => state.kind === 'up' && !state.isInUse;

/**
 * Returns the reason shown to users. The last verdict is kept during retries, because a reason that changes with every retry is useless.
 */
export const pathReasonOf = (state: PathState): PathReason => {
  if (state.kind === 'off') return 'off';
  return isPathUsed(state) ? '' : (state.history.verdict ?? 'probing');
};

export const transitionPath = (state: PathState, event: PathEvent, now: number): PathStep => {
  switch (event.kind) {
    case 'started':
      return isPathUsed(state) ? [state, []] : beginRound(historyOf(state), now + event.beginAfterMs, now);
    case 'heard':
      return heard(state, event.isAnswer, now);
    case 'used':
      return wantsUse(state) ? settle({ ...(state as UpState), isInUse: true }, now) : [state, []];
    case 'tick':
      return tick(state, now);
    case 'addresses-changed':
      return addressesChanged(state, now);
    case 'switched-off':
      return [PATH_OFF, isPathUsed(state) ? [{ kind: 'leave', reason: 'off' }] : []];
  }
};

type UpState = Extract<PathState, { kind: 'up' }>;
type ProbingState = Extract<PathState, { kind: 'probing' }>;
type DoubtfulState = Extract<PathState, { kind: 'doubtful' }>;

const historyOf = (state: PathState): PathHistory => (state.kind === 'off' ? FRESH : state.history);

const heard = (state: PathState, isAnswer: boolean, now: number): PathStep => {
  // The other side is probing, or a late answer arrived: start a new round without waiting for the pause to end.
  if (state.kind === 'down') return beginRound(state.history, now, now);
  if (state.kind === 'off' || !isAnswer) return [state, []];
  const { history } = state;
  const since = state.kind === 'probing' ? now : state.since;
  const [next, effects] = settle({ kind: 'up', since, answeredAt: now, isInUse: false, history }, now);
  return [next, state.kind === 'probing' ? [{ kind: 'use' }, ...effects] : effects];
};

const addressesChanged = (state: PathState, now: number): PathStep => {
  switch (state.kind) {
    case 'off':
    case 'doubtful':
      return [state, []];
    case 'up':
      return doubt(state, now);
    case 'probing':
    case 'down':
      return beginRound(state.history, now, now);
  }
};

const tick = (state: PathState, now: number): PathStep => {
  switch (state.kind) {
    case 'off':
      return [state, []];
    case 'probing':
      return probe(state, now);
    case 'up':
      return settle(state, now);
    case 'doubtful':
      return ask(state, now);
    case 'down':
      return now < state.retryAt ? [state, [{ kind: 'wake', at: state.retryAt }]] : beginRound(state.history, now, now);
  }
};

// ---- probing: dense at first, since most that succeed do so at once; then thin, then over ----

const beginRound = (history: PathHistory, triedAt: number, now: number): PathStep =>
  probe({ kind: 'probing', triedAt, attempt: 1, nextProbeAt: triedAt, history }, now);

const probe = (state: ProbingState, now: number): PathStep => {
  const { history, attempt, triedAt, nextProbeAt } = state;
  if (now < nextProbeAt) return [state, [{ kind: 'wake', at: nextProbeAt }]];
  const elapsedMs = now - triedAt;
  if (elapsedMs >= LIMITS.PATH_TRY_MS) {
    if (attempt === LIMITS.PATH_TRIES) return goDown({ ...history, verdict: 'no-answer' }, now);
    return probe({ ...state, triedAt: now, attempt: attempt + 1, nextProbeAt: now }, now);
  }
  const everyMs = elapsedMs < LIMITS.PATH_DENSE_MS ? LIMITS.PATH_DENSE_EVERY_MS : LIMITS.PATH_THIN_EVERY_MS;
  // Probes are scheduled from the start of the attempt, so that a late timer does not shift later probes. Missed probes are skipped.
  const nextMs = Math.min(LIMITS.PATH_TRY_MS, (Math.floor(elapsedMs / everyMs) + 1) * everyMs);
  const next = { ...state, nextProbeAt: triedAt + nextMs };
  return [next, [{ kind: 'send-probe' }, { kind: 'wake', at: next.nextProbeAt }]];
};

// ---- up, and in doubt ----

/**
 * Decides whether a path in use has been silent for too long. Only answers count: a side that hears the other side but is no longer heard
 * must leave the path, too.
 */
const settle = (state: UpState, now: number): PathStep => {
  const quietMs = state.isInUse ? LIMITS.PATH_USED_QUIET_MS : LIMITS.PATH_IDLE_QUIET_MS;
  const doubtAt = state.answeredAt + quietMs;
  return now < doubtAt ? [state, [{ kind: 'wake', at: doubtAt }]] : doubt(state, now);
};

const doubt = ({ since, history }: UpState, now: number): PathStep => {
  const giveUpAt = now + LIMITS.PATH_DOUBT_MS;
  return ask({ kind: 'doubtful', since, pings: 0, nextPingAt: now, giveUpAt, history }, now);
};

const ask = (state: DoubtfulState, now: number): PathStep => {
  const { since, history, pings, giveUpAt, nextPingAt } = state;
  if (now >= giveUpAt && pings >= LIMITS.PATH_DOUBT_PINGS_MIN) {
    // A path that repeatedly lasts only a moment is retried as rarely as a path that never works.
    const failures = now - since >= LIMITS.PATH_STABLE_MS ? 0 : history.failures;
    const [next, effects] = goDown({ failures, verdict: 'went-silent' }, now);
    return [next, [{ kind: 'leave', reason: 'went-silent' }, ...effects]];
  }
  if (now < nextPingAt) return [state, [{ kind: 'wake', at: nextPingAt }]];
  const next = {
    ...state,
    pings: pings + 1,
    nextPingAt: now + LIMITS.PATH_DOUBT_PING_EVERY_MS,
    // After a pause of the process, too few pings were sent to give up the path, and answers may still be unread.
    giveUpAt: now >= giveUpAt ? now + LIMITS.PATH_DOUBT_MS / 2 : giveUpAt,
  };
  return [next, [{ kind: 'send-ping' }, { kind: 'wake', at: Math.min(next.nextPingAt, next.giveUpAt) }]];
};

// ---- down ----

const RETRY_AFTER_MS = [
  LIMITS.PATH_RETRY_FIRST_MS,
  LIMITS.PATH_RETRY_SECOND_MS,
  LIMITS.PATH_RETRY_THIRD_MS,
  LIMITS.PATH_RETRY_LATER_MS,
] as const;

const goDown = ({ failures, verdict }: PathHistory, now: number): PathStep => {
  const afterMs = RETRY_AFTER_MS[Math.min(failures, RETRY_AFTER_MS.length - 1)] as number;
  const retryAt = now + afterMs;
  return [{ kind: 'down', retryAt, history: { failures: failures + 1, verdict } }, [{ kind: 'wake', at: retryAt }]];
};
