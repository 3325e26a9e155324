// How a tunnel's local service is to be probed: as its owner says it, as the edge is told, and as the prober goes by it.
import { Fault } from '@tunnel/errors';
import { type ControlMessageInput, type HealthCheckSpec, healthCheckSpec } from '@tunnel/protocol';

export interface HealthCheck {
  /** `tcp`: a connection opens. `http`: a GET is answered. Left out: no probe, the tunnel counts as healthy. */
  readonly type?: 'tcp' | 'http' | undefined;
  /** http: what is asked for; begins with a slash. */
  readonly path?: string | undefined;
  /** From the beginning of one probe to the next; 10 when left out. */
  readonly intervalSecs?: number | undefined;
  /** For one probe, from connecting to the status line; 3 when left out. */
  readonly timeoutSecs?: number | undefined;
  /** Failures in a row that make it unhealthy; 3 when left out. */
  readonly maxFailed?: number | undefined;
  /** http: false takes any status for a good one. */
  readonly expect2xx?: boolean | undefined;
  /** Where the edge tells that the group has no healthy member left. */
  readonly alertWebhook?: string | undefined;
}

type WireCheck = NonNullable<Extract<ControlMessageInput, { type: 'RegisterTunnel' }>['health_check']>;

export const wireHealthCheck = (check: HealthCheck): WireCheck => ({
  type: check.type,
  path: check.path,
  interval_secs: check.intervalSecs,
  timeout_secs: check.timeoutSecs,
  max_failed: check.maxFailed,
  expect_2xx: check.expect2xx,
  alert_webhook: check.alertWebhook,
});

/** With its defaults; null: there is nothing to probe. */
export const probeRulesOf = (check: HealthCheck | undefined): HealthCheckSpec | null =>
  check?.type === undefined ? null : healthCheckSpec.parse(wireHealthCheck(check));

/** Throws a Fault for what no frame can carry, and for a URL that is none. */
export const checkHealthCheck = (check: HealthCheck): void => {
  const { alertWebhook } = check;
  if (alertWebhook !== undefined && !(/^https?:\/\//i.test(alertWebhook) && URL.canParse(alertWebhook))) {
    // Not repeated: whoever knows such a URL can write to it.
    throw new Fault('CLIENT_USAGE', { reason: 'the alert webhook must be an http or https URL' });
  }
  const parsed = healthCheckSpec.safeParse(wireHealthCheck(check));
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  const reason = `health_check.${issue?.path.join('.') ?? ''} is not valid: ${issue?.message ?? ''}`;
  throw new Fault('CLIENT_USAGE', { reason });
};
