// Short reasons why the edge answered a request itself, for one line in a terminal: `service not running`, `rule office`.
import type { EdgeAnswer } from './request-record.ts';

/** Why the edge answered a request itself, in words, by the error code of the response. */
export const REASONS: Readonly<Record<string, string>> = {
  LOCAL_UNREACHABLE: 'service not running',
  LOCAL_CLOSED: 'service closed the connection',
  LOCAL_TIMEOUT: 'service too slow',
  LOCAL_MALFORMED: 'service sent invalid HTTP',
  TUNNEL_AWAY: 'client not connected',
  GROUP_UNHEALTHY: 'no healthy member in the group',
  CONNECTIONS_PER_TUNNEL: 'too many connections',
  CONNECTIONS_PER_ADDRESS: 'too many connections from one address',
  HTTP_ROUTE_TIMEOUT: 'rules took too long',
  HTTP_BAD_REQUEST: 'bad request',
  POLICY_BODY_TOO_LARGE: 'request body too large',
  POLICY_BUSY: 'rules busy',
  POLICY_PROVIDER_AWAY: 'identity provider not reachable',
  EDGE_SHUTTING_DOWN: 'edge restarting',
  INTERNAL: 'internal edge error',
};

export const edgeAnswerText = ({ code, rule }: Pick<EdgeAnswer, 'code' | 'rule'>): string => {
  if (rule !== null) return `rule ${rule}`;
  if (code === null) return 'answered by the edge';
  // For an unknown code of a newer edge, the code itself is shown.
  return REASONS[code] ?? code;
};
