// The rows of the group tables. Edge and platform return the same fields.
import { numbered } from './numbered.fixture.ts';

export const GROUP_ROWS = {
  GroupSummary: numbered([
    'protocol: string',
    'label: string',
    'name: string',
    'key_hash_short: string',
    'region_id: string',
    'member_count: integer',
    'healthy_count: integer',
    'unhealthy_count: integer',
    'total_dispatches: integer',
    'total_health_failures: integer',
    'members: array of GroupMemberSummary',
  ]),
  GroupMemberSummary: numbered([
    'tunnel_id: string',
    'session_id: string',
    'client_addr: string',
    'request_count: integer',
    'bytes_proxied: integer',
    'healthy: boolean',
    'consecutive_failures: integer',
    'total_health_failures: integer',
    'connected_since: string',
    'health_check_kind: string, may be left out',
    'has_alert_webhook: boolean',
    'the line after the table: the alert webhook URL itself is in no response',
  ]),
} as const;
