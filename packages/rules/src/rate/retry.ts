// When a peer counts as dead, and when what failed is tried again: a connection, a mail.

// Connections: the first pause is drawn from zero on, because most losses are over at once. Later pauses are at most a quarter of the time that was spent
// without a connection, so that a server that comes back is found soon after a short outage and is asked rarely during a long one. They are drawn
// from the upper half of their range, so that clients that were cut off together do not come back together. Time without a connection is
// forgotten only after a stable while: a link that flaps must not be hammered.

export interface BackoffRules {
  /** The longest first pause. Later pauses may always be twice as long. */
  readonly minMs: number;
  readonly maxMs: number;
  readonly stableAfterMs: number;
}

export interface BackoffState {
  /** Failures in a row. */
  readonly failures: number;
  readonly connectedAt: number | null;
  /** When the connection was lost, or the first attempt failed; null while there is a connection. */
  readonly lostAt: number | null;
  /** Time without a connection in outages that no stable connection followed, without the current outage. */
  readonly earlierMs: number;
}

export const CALM: BackoffState = { failures: 0, connectedAt: null, lostAt: null, earlierMs: 0 };

export const afterConnect = (state: BackoffState, now: number): BackoffState => ({
  ...state,
  connectedAt: now,
  lostAt: null,
  earlierMs: state.earlierMs + (state.lostAt === null ? 0 : now - state.lostAt),
});

/** An attempt failed, or a connection was lost. `random` in [0, 1). */
export const afterFailure = (
  state: BackoffState,
  now: number,
  random: number,
  rules: BackoffRules,
): { readonly state: BackoffState; readonly delayMs: number } => {
  const wasStable = state.connectedAt !== null && now - state.connectedAt >= rules.stableAfterMs;
  const { failures, earlierMs, lostAt } = wasStable ? CALM : state;
  const since = lostAt ?? now;
  const quarterMs = (earlierMs + now - since) / 4;
  const ceilingMs = failures === 0 ? rules.minMs : Math.min(rules.maxMs, Math.max(2 * rules.minMs, quarterMs));
  const delayMs = Math.round(failures === 0 ? ceilingMs * random : (ceilingMs / 2) * (1 + random));
  return { state: { failures: failures + 1, connectedAt: null, lostAt: since, earlierMs }, delayMs };
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
