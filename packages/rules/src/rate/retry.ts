// Retry delays for connections and mails, and the detection of dead peers.

// Connections: the first delay is random from zero, because most outages are short. Later delays are at most a quarter of the time spent
// without a connection, so that a server is found soon after a short outage and contacted rarely during a long outage. They are random in
// the upper half of their range, so that clients disconnected together do not reconnect together. The time without a connection is reset
// only after a stable connection, so that a flapping link is not hammered.

export interface BackoffRules {
  /** Maximum delay before the first retry. Later delays can always be twice as long. */
  readonly minMs: number;
  readonly maxMs: number;
  readonly stableAfterMs: number;
}

export interface BackoffState {
  /** Number of failed connection attempts in a row. */
  readonly failures: number;
  readonly connectedAt: number | null;
  /** Time when the connection was lost or the first attempt failed. Null while connected. */
  readonly lostAt: number | null;
  /** Time without a connection in earlier outages that were not followed by a stable connection. */
  readonly earlierMs: number;
}

export const CALM: BackoffState = { failures: 0, connectedAt: null, lostAt: null, earlierMs: 0 };

export const afterConnect = (state: BackoffState, now: number): BackoffState => ({
  ...state,
  connectedAt: now,
  lostAt: null,
  earlierMs: state.earlierMs + (state.lostAt === null ? 0 : now - state.lostAt),
});

/** Called after a failed attempt or a lost connection. `random` is in [0, 1). */
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

// Retries of mails: the time of the next attempt, and when to give up.

interface MailRetryRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** Time after the creation of a mail at which retries end. */
  readonly giveUpAfterMs: number;
}

type MailRetry = { readonly kind: 'retry'; readonly at: number } | { readonly kind: 'give-up' };

/**
 * Decides after `attempts` failed attempts. `random` in [0, 1) spreads mails that failed together. The last attempt is at the very end of
 * the period, so that a server that recovers in time gets every mail.
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

// Liveness of a peer: pings at a fixed interval; dead if no data arrives for longer than a ping and its answer take.

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
