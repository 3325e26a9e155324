// Entries of the tunnel log, for tests of pure functions.
import type { TunnelLogEntry } from '@tunnel/contract';

/** Creates an entry of the tunnel log. A higher number makes a newer entry. The tunnel has ended unless `more` says otherwise. */
export const tunnelEntry = (n: number, more: Partial<TunnelLogEntry> = {}): TunnelLogEntry => ({
  id: `id-${String(n).padStart(5, '0')}`,
  tunnel_id: `tun_${n}`,
  protocol: 'http',
  label: 'web',
  registered_at: new Date(n * 1000).toISOString(),
  unregistered_at: new Date(n * 1000 + 500).toISOString(),
  region_id: 'local',
  request_count: 0,
  bytes_proxied: 0,
  ...more,
});
