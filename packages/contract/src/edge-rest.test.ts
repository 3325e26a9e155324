import { expect, it } from 'vitest';
import { edgeTunnel, showProtocol } from './edge-rest.ts';

const tunnel = {
  tunnel_id: 'tun_1',
  session_id: 'ses_1',
  name: 'db',
  protocol: 'tcp',
  label: '20000',
  public_url: 'tcp://localhost:20000',
  assigned_port: 20000,
  group: null,
  healthy: true,
  client_addr: '127.0.0.1:5000',
  client_name: 'laptop',
  region_id: 'local',
  request_count: 0,
  bytes_proxied: 0,
  connected_since: '2026-01-02T03:04:05.678Z',
  policy: { rules: 2, actions: ['auth'], revision: 0, hash_short: '1f3a9c02' },
};

it('a tunnel has exactly the fields of the contract', () => {
  expect(Object.keys(edgeTunnel.shape)).toEqual(Object.keys(tunnel));
  expect(edgeTunnel.parse(tunnel)).toEqual(tunnel);
});

it('a tunnel without a port says null, and a time that is not ISO 8601 is refused', () => {
  expect(edgeTunnel.safeParse({ ...tunnel, assigned_port: null }).success).toBe(true);
  expect(edgeTunnel.safeParse({ ...tunnel, connected_since: 'yesterday' }).success).toBe(false);
});

it('https is shown as http, and everything else as itself', () => {
  expect(showProtocol('https')).toBe('http');
  expect(showProtocol('tcp')).toBe('tcp');
});
