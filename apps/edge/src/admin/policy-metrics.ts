// Metrics of policies: responses sent by rules, password checks and provider requests, and the current memory use of limiters and held
// bodies.
import type { Metrics } from '@tunnel/runtime';

/** Number of responses that policy rules sent with the same action and status. */
export interface PolicyAnswers {
  readonly action: string;
  readonly status: number;
  readonly count: number;
}

export interface PolicyFigures {
  /** Returns the responses of policy rules to requests, connections and flows. */
  readonly answers: () => Iterable<PolicyAnswers>;
  /** Returns the number of password checks, by result. */
  readonly passwordChecks: () => Readonly<Record<string, number>>;
  /** Returns the number of requests to login providers, by result. */
  readonly providerRequests: () => Readonly<Record<string, number>>;
  readonly limiterKeys: () => number;
  readonly heldBytes: () => number;
}

export const addPolicySeries = (metrics: Metrics, policy: PolicyFigures): void => {
  metrics.seriesOf(
    'tunnel_policy_answers_total',
    'Responses sent by policy rules, by action and status',
    'counter',
    () =>
      Array.from(policy.answers(), ({ action, status, count }) => ({
        labels: { action, status: String(status) },
        value: count,
      })),
  );
  const byResult = (name: string, help: string, counts: () => Readonly<Record<string, number>>): void =>
    metrics.seriesOf(name, help, 'counter', () =>
      Object.entries(counts()).map(([result, value]) => ({ labels: { result }, value })),
    );
  byResult(
    'tunnel_policy_password_checks_total',
    'Password checks of visitors, by result. cached: answered from the cache',
    policy.passwordChecks,
  );
  byResult(
    'tunnel_policy_provider_requests_total',
    'Requests to sign-in providers and for their keys, by result',
    policy.providerRequests,
  );
  metrics.gauge('tunnel_policy_limiter_keys', 'Visitors tracked by rate limits', [], policy.limiterKeys);
  metrics.gauge('tunnel_policy_held_bytes', 'Webhook bytes waiting for a signature check', [], policy.heldBytes);
};
