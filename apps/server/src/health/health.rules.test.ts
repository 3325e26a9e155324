import { expect, it } from 'vitest';
import { healthVerdict, probesOf } from './health.rules.ts';

const PLATFORM = { part: 'platform', url: 'http://127.0.0.1:8080/health' } as const;
const EDGE = { part: 'edge', url: 'http://127.0.0.1:4041/api/status' } as const;

it('only the parts that the server runs are checked, and none of the pages queries the database', () => {
  const urls = { platform_url: 'http://127.0.0.1:8080', api_url: 'http://127.0.0.1:4041' };
  expect(probesOf(urls)).toEqual([PLATFORM, EDGE]);
  expect(probesOf({ ...urls, platform_url: null })).toEqual([EDGE]);
  expect(probesOf({ ...urls, api_url: null })).toEqual([PLATFORM]);
});

it('the verdict is `ok`, or a single line that names every unhealthy part', () => {
  const good = { problem: null };
  expect(healthVerdict([{ ...PLATFORM, ...good }])).toEqual({ isHealthy: true, line: 'ok' });
  expect(
    healthVerdict([
      { ...PLATFORM, ...good },
      { ...EDGE, problem: 'no response within 5 s' },
    ]),
  ).toEqual({ isHealthy: false, line: `edge: no response within 5 s (${EDGE.url})` });
  expect(
    healthVerdict([
      { ...PLATFORM, problem: 'status 503' },
      { ...EDGE, problem: 'ECONNREFUSED' },
    ]).line,
  ).toBe(`platform: status 503 (${PLATFORM.url}); edge: ECONNREFUSED (${EDGE.url})`);
});

it('a server without an edge and a platform is not healthy', () => {
  expect(healthVerdict([]).isHealthy).toBe(false);
});
