import { expect, it } from 'vitest';
import { type CaptureList, captureList, collectCaptures, edgeTunnel, showProtocol } from './edge-rest.ts';

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

it('a tunnel in the edge API has exactly the fields of the contract', () => {
  expect(Object.keys(edgeTunnel.shape)).toEqual(Object.keys(tunnel));
  expect(edgeTunnel.parse(tunnel)).toEqual(tunnel);
});

it('a tunnel without a port has null, and a time that is not ISO 8601 is refused', () => {
  expect(edgeTunnel.safeParse({ ...tunnel, assigned_port: null }).success).toBe(true);
  expect(edgeTunnel.safeParse({ ...tunnel, connected_since: 'yesterday' }).success).toBe(false);
});

it('https is shown as http, and every other protocol unchanged', () => {
  expect(showProtocol('https')).toBe('http');
  expect(showProtocol('tcp')).toBe('tcp');
});

it('a capture list of an older edge without pages counts as the only page', async () => {
  const list = captureList.parse({ tunnel_id: 't', requests: [], truncated: true });
  expect(await collectCaptures(async () => list, 200)).toEqual(list);
});

/** Simulates pages with the given numbers of requests; each cursor is the number of the next page. */
const paged = (...sizes: number[]) => {
  const asked: string[] = [];
  const ask = async ({ limit, cursor = '0' }: { limit: number; cursor?: string }): Promise<CaptureList> => {
    asked.push(`${cursor}:${limit}`);
    const at = Number(cursor);
    const requests = Array.from({ length: sizes[at] ?? 0 }, () => ({})) as CaptureList['requests'];
    return { tunnel_id: 't', requests, truncated: true, next_cursor: at + 1 < sizes.length ? String(at + 1) : null };
  };
  return { asked, collect: async (most: number) => (await collectCaptures(ask, most)).requests.length };
};

it.each([
  [1, [1], ['0:1']],
  [100, [100, 100], ['0:100']],
  [130, [100, 30, 70], ['0:100', '1:30']],
  [200, [100, 70], ['0:100', '1:100']],
  [200, [100, 0, 100], ['0:100', '1:100']],
])(
  '%i requests are collected from pages of %j with the fewest calls, up to an empty page',
  async (most, sizes, calls) => {
    const { asked, collect } = paged(...sizes);
    expect(await collect(most)).toBe(
      Math.min(most, sizes[0] === 100 && sizes[1] === 0 ? 100 : sizes.reduce((a, b) => a + b)),
    );
    expect(asked).toEqual(calls);
  },
);
