// Large numbers of tunnels and groups in the form of API responses.
import type { GroupSummary, TunnelLogEntry } from '@tunnel/contract';

const HOUR_MS = 3_600_000;
const BEGIN_MS = Date.UTC(2026, 0, 1);

const id = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** Returns tunnels, newest first. The first three are live. */
export const manyTunnels = (count: number): TunnelLogEntry[] =>
  Array.from({ length: count }, (_, index) => {
    const registered = BEGIN_MS - index * HOUR_MS;
    return {
      id: id(index),
      tunnel_id: `tun_${index}`,
      protocol: index % 4 === 0 ? 'tcp' : 'http',
      label: index % 4 === 0 ? String(20_000 + index) : `site-${index}`,
      region_id: 'local',
      registered_at: new Date(registered).toISOString(),
      unregistered_at: index < 3 ? null : new Date(registered + HOUR_MS / 2).toISOString(),
      request_count: (index * 37) % 5000,
      bytes_proxied: index * 1000,
    };
  });

export const manyPools = (count: number, members: number): GroupSummary[] =>
  Array.from({ length: count }, (_, index) => {
    const unhealthy = index % 10 === 0 ? 1 : 0;
    return {
      name: `pool-${index}`,
      protocol: 'http',
      label: `pool-${index}`,
      region_id: 'local',
      key_hash_short: 'a1b2c3d4',
      member_count: members,
      healthy_count: members - unhealthy,
      unhealthy_count: unhealthy,
      total_dispatches: index * 100,
      total_health_failures: unhealthy,
      members: Array.from({ length: members }, (_member, number) => ({
        tunnel_id: `tun_${index}_${number}`,
        session_id: `ses_${index}_${number}`,
        client_addr: `10.0.${index % 250}.${number}:50000`,
        healthy: number >= unhealthy,
        health_check_kind: 'http',
        consecutive_failures: number < unhealthy ? 3 : 0,
        total_health_failures: number < unhealthy ? 3 : 0,
        has_alert_webhook: false,
        request_count: (number * 13) % 97,
        bytes_proxied: number * 10_000,
        connected_since: new Date(BEGIN_MS).toISOString(),
      })),
    };
  });
