// Sends a test alert to the operator's URL, so that delivery is known to work before a real alert.

import { type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { type Clock, lazySecureContext, randomId, reasonOf, requestOnce } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import { composeAlert } from './alert-message.ts';

export interface TestAlertDeps {
  readonly clock: Clock;
  readonly version: string;
}

export interface TestAlertEnd {
  /** Host of the alert URL. The rest of the URL is never shown, because the path usually contains a secret. */
  readonly host: string;
  readonly outcome: 'delivered' | 'refused-status' | 'timeout' | 'failed';
  readonly status: number | null;
  /** Reason for a missing response. Null if a response arrived. */
  readonly reason: string | null;
  readonly durationMs: number;
}

/** Group in the test alert. The body has the same fields as a real alert, so a receiver that accepts the test also accepts real alerts. */
const GROUP = { protocol: 'http', label: 'alert-test', groupName: 'alert test', keyHashShort: '00000000' } as const;

export const sendTestAlert = async (
  { load_balancing, region }: Pick<ServerConfig, 'load_balancing' | 'region'>,
  { clock, version }: TestAlertDeps,
): Promise<TestAlertEnd> => {
  if (load_balancing.alert_webhook_url === '') throw new Fault('CONFIG_NO_ALERT_URL');
  const url = new URL(load_balancing.alert_webhook_url);
  url.hash = '';
  const stamp = {
    id: randomId('msg'),
    now: clock.now(),
    secret: load_balancing.alert_secret,
    userAgent: `tunnel-edge/${version}`,
    regionId: region.id,
  };
  const cause = { memberCount: 0, at: clock.now(), account: '', groupId: '', tenantUrls: [] };
  const message = composeAlert({ ...GROUP, ...cause }, stamp);
  const deadline = new AbortController();
  const timer = clock.setTimeout(() => deadline.abort(), EDGE_LIMITS.ALERT_TIMEOUT_MS);
  const startedAt = clock.monotonic();
  const end = await requestOnce({
    url,
    method: 'POST',
    ...message,
    addresses: null,
    signal: deadline.signal,
    maxBytes: 0,
    secureContext: lazySecureContext(undefined),
  }).then(answered, (error: unknown) => unanswered(error, deadline.signal.aborted));
  timer.cancel();
  return { host: url.host, ...end, durationMs: Math.round(clock.monotonic() - startedAt) };
};

type End = Pick<TestAlertEnd, 'outcome' | 'status' | 'reason'>;

const answered = ({ status }: { readonly status: number }): End => ({
  outcome: status >= 200 && status < 300 ? 'delivered' : 'refused-status',
  status,
  reason: null,
});

const unanswered = (error: unknown, isLate: boolean): End => ({
  outcome: isLate ? 'timeout' : 'failed',
  status: null,
  reason: isLate ? `no response within ${EDGE_LIMITS.ALERT_TIMEOUT_MS / 1000} s` : reasonOf(error),
});
