// When a peer counts as dead, and when what failed is tried again: a connection, a mail.

// Connections: the first delay is drawn from the whole of its range, because most losses are over at once. Later delays grow exponentially and are drawn
// from the upper half of their range, so that clients cut off together do not come back together. The row of failures is forgotten only after a
// stable while: a link that flaps must not be hammered.

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
  const ceilingMs = Math.min(rules.maxMs, rules.minMs * 2 ** Math.min(failures, 30));
  const delayMs = Math.round(failures === 0 ? ceilingMs * random : (ceilingMs / 2) * (1 + random));
  return { state: { failures: failures + 1, connectedAt: null }, delayMs };
};

// Mails: when one that could not be sent is tried again, and when nobody tries any more.

interface MailRetryRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** Counted from when it was written. */
  readonly giveUpAfterMs: number;
}

type MailRetry = { readonly kind: 'retry'; readonly at: number } | { readonly kind: 'give-up' };

/**
 * After the `attempts`-th try failed. `random` in [0, 1) spreads mails that failed together. The last try is at the very end of
 * the time: a server that came back in time gets every mail.
 */
export const decideMailRetry = (
  mail: { readonly writtenAt: number; readonly attempts: number },
  now: number,
  random: number,
  rules: MailRetryRules,
): MailRetry => {
  const end = mail.writtenAt + rules.giveUpAfterMs;
  if (now >= end) return { kind: 'give-up' };
  const delayMs = Math.min(rules.maxMs, rules.minMs * 2 ** Math.min(Math.max(0, mail.attempts - 1), 30));
  return { kind: 'retry', at: Math.min(end, Math.round(now + delayMs * (0.75 + random / 2))) };
};

// Whether a peer still lives: pings at a fixed pace, dead when nothing at all was heard for longer than a ping and its answer need.

interface LivenessRules {
  readonly pingEveryMs: number;
  readonly deadAfterMs: number;
}

interface LivenessFacts {
  readonly lastHeardAt: number;
  readonly lastPingAt: number;
}

type LivenessVerdict = 'alive' | 'ping-due' | 'dead';

export const judgeLiveness = (facts: LivenessFacts, now: number, rules: LivenessRules): LivenessVerdict => {
  if (now - facts.lastHeardAt >= rules.deadAfterMs) return 'dead';
  return now - facts.lastPingAt >= rules.pingEveryMs ? 'ping-due' : 'alive';
};
