import { MUX_LIMITS } from '../limits.ts';
// Whether the better path is used: UDP between client and edge beside the carriers, or between two peers beside the relay. It is tried, proven in
// both directions, used while it answers, left when it falls silent, and tried again. Time is monotonic, so that a clock that is set moves no path.
//
//   off ─ started ─► probing ─ an answer ─► up ◄─ an answer ─ doubtful
//                     │   ▲                  └─ nothing answered for a while ─► │
//          3 tries over   └─ retry, addresses-changed, heard ─ down ◄─ still nothing
//
// An answer is an authenticated arrival that repeats what a probe or ping of ours said, so it proves both directions at once: ours was heard, and we
// hear. Any other arrival proves one. What we have sent proves nothing.

export type PathState =
  | { readonly kind: 'off' }
  | {
      readonly kind: 'probing';
      /** When this try begins or began; it may lie ahead, so that two peers begin together. */
      readonly triedAt: number;
      /** From 1. */
      readonly attempt: number;
      readonly nextProbeAt: number;
      readonly history: PathHistory;
    }
  | {
      readonly kind: 'up';
      readonly since: number;
      readonly answeredAt: number;
      /** Something was sent by it since the last answer. */
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
  /** Times in a row that it was tried in vain, or held for a moment alone. */
  readonly failures: number;
  /** Why it was not used the last time; null: it has not been tried to the end. */
  readonly verdict: 'no-answer' | 'went-silent' | null;
}

/** Why the sure way is used; empty: it is not. Whoever drives the machine may know better than `no-answer`. */
export type PathReason = '' | 'off' | 'probing' | 'no-answer' | 'went-silent';

export type PathEvent =
  /** The path may be had, or the other side begins to try: both should, at the same time. `beginAfterMs`: half a round trip of the sure way. */
  | { readonly kind: 'started'; readonly beginAfterMs: number }
  /** Something authenticated came by it. `isAnswer`: to a probe or ping of ours. */
  | { readonly kind: 'heard'; readonly isAnswer: boolean }
  /** Something is sent by it. To be told only while `wantsUse` says so: not for each datagram. */
  | { readonly kind: 'used' }
  | { readonly kind: 'tick' }
  /** Of this machine. */
  | { readonly kind: 'addresses-changed' }
  | { readonly kind: 'switched-off' };

export type PathEffect =
  /** To every address where the other side may be. */
  | { readonly kind: 'send-probe' }
  /** By the path that is in use. */
  | { readonly kind: 'send-ping' }
  | { readonly kind: 'use' }
  /** At once back on the sure way. */
  | { readonly kind: 'leave'; readonly reason: PathReason }
  /** A tick is wanted then; takes the place of the one before. */
  | { readonly kind: 'wake'; readonly at: number };

export type PathStep = readonly [PathState, readonly PathEffect[]];

export const PATH_OFF: PathState = { kind: 'off' };

const FRESH: PathHistory = { failures: 0, verdict: null };

const LIMITS = MUX_LIMITS;

export const isPathUsed = (state: PathState): boolean => state.kind === 'up' || state.kind === 'doubtful';

/** The next use is to be told. */
export const wantsUse = (state: PathState): boolean => state.kind === 'up' && !state.isInUse;

/** What was found out stays said while it is tried again: a reason that changes with each retry tells nobody anything. */
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
  // The other side tries, or a late answer came: reason enough to look again, whatever the pause.
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
  // From the beginning of the try, not from now: a late timer moves no later probe, and those that were missed are not made up for.
  const nextMs = Math.min(LIMITS.PATH_TRY_MS, (Math.floor(elapsedMs / everyMs) + 1) * everyMs);
  const next = { ...state, nextProbeAt: triedAt + nextMs };
  return [next, [{ kind: 'send-probe' }, { kind: 'wake', at: next.nextProbeAt }]];
};

// ---- up, and in doubt ----

/** Arrivals that are no answer do not count here: whoever still hears the other side and is not heard any more must leave, too. */
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
    // One that holds for a moment alone, again and again, is tried as rarely as one that does not hold.
    const failures = now - since >= LIMITS.PATH_STABLE_MS ? 0 : history.failures;
    const [next, effects] = goDown({ failures, verdict: 'went-silent' }, now);
    return [next, [{ kind: 'leave', reason: 'went-silent' }, ...effects]];
  }
  if (now < nextPingAt) return [state, [{ kind: 'wake', at: nextPingAt }]];
  const next = {
    ...state,
    pings: pings + 1,
    nextPingAt: now + LIMITS.PATH_DOUBT_PING_EVERY_MS,
    // A process that stood still has asked too seldom to give up: the answers may lie unread.
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
