import type { Tunnel } from '@tunnel/client';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { oneLine } from '../io/problem-report.ts';
import { countsText, durationText, eventLine, type FinishedRequest, requestLine, routeText } from './lines.ts';

const HOSTILE = 'http://a\u001b]0;owned\u0007\u009b2J\r\nb.example';

const tunnel = {
  name: 'web',
  protocol: 'http',
  publicUrl: HOSTILE,
  local: '127.0.0.1:3000',
  group: null,
  warnings: [],
  guard: null,
} as unknown as Tunnel;

it('a public URL from the edge cannot move the cursor or start a new line', () => {
  expect(routeText(tunnel)).toBe('http://a ]0;owned 2J b.example -> 127.0.0.1:3000');
  const moved = eventLine({ type: 'tunnel-moved', tunnel, previousUrl: HOSTILE });
  expect(moved).toMatch(/\(was http:\/\/a \]0;owned 2J b\.example\)$/);
  expect(moved).not.toMatch(/\p{Cc}/u);
});

it.each([
  ['udp', '', 'web: datagrams over UDP'],
  ['carrier', 'probing', 'web: datagrams over TCP (trying UDP)'],
  ['carrier', 'udp-blocked', 'web: datagrams over TCP (UDP does not reach the edge and back)'],
  ['carrier', 'went-silent', 'web: datagrams over TCP (the UDP path went silent; the client retries later)'],
  ['carrier', 'off', 'web: datagrams over TCP (this edge offers no UDP path)'],
  ['carrier', 'of-a-newer\u001bversion', 'web: datagrams over TCP (of-a-newer version)'],
] as const)('the datagram path and its reason are printed: %s %s', (path, reason, line) => {
  expect(eventLine({ type: 'datagrams', tunnel, path, reason })).toBe(line);
});

it('dropped datagrams are counted if there are any', () => {
  const counts = { connections: 3, open: 1, requests: 0, edgeAnswered: 0, bytesIn: 10, bytesOut: 20 };
  const said = (dropped: Tunnel['dropped']): string => countsText({ counts, dropped, protocol: 'udp' } as Tunnel);
  expect(said({})).toBe('3 flows, 1 open, 10 B in, 20 B out');
  expect(said({ behind: 1 })).toMatch(/, 1 datagram dropped$/);
  expect(said({ behind: 1, local: 2 })).toMatch(/, 3 datagrams dropped$/);
});

it('a tunnel without traffic says so for each protocol', () => {
  const counts = { connections: 0, open: 0, requests: 0, edgeAnswered: 0, bytesIn: 0, bytesOut: 0 };
  const said = (protocol: Tunnel['protocol']): string => countsText({ counts, dropped: {}, protocol } as Tunnel);
  expect((['http', 'https', 'tcp', 'udp', 'p2p'] as const).map(said)).toEqual([
    ...['No requests yet', 'No requests yet', 'No connections yet', 'No datagrams yet', 'No connections yet'],
  ]);
});

it('responses from the edge are counted next to the requests', () => {
  const counts = { connections: 2, open: 0, requests: 0, edgeAnswered: 2, bytesIn: 0, bytesOut: 0 };
  const said = (more: object = {}): string =>
    countsText({ counts: { ...counts, ...more }, dropped: {}, protocol: 'http' } as unknown as Tunnel);
  expect(said()).toBe('0 requests, 2 more answered by the edge, 0 B in, 0 B out');
  expect(said({ requests: 3 })).toBe('3 requests, 2 more answered by the edge, 0 B in, 0 B out');
});

it('bidi controls and line separators become spaces, and letters of any script stay', () => {
  expect(oneLine('a\u202eb\u2066c\u200fd\u061ce\u2028f\u2029g')).toBe('a b c d e f g');
  expect(oneLine('żółw 日本 👩\u200d💻')).toBe('żółw 日本 👩\u200d💻');
});

const at = new Date(2030, 0, 1, 7, 8, 9).getTime();
const event: FinishedRequest = {
  type: 'request-finished',
  id: 'req_1',
  tunnel: { name: 'web' } as Tunnel,
  method: 'GET',
  path: '/index.html',
  at,
  replayOf: null,
  status: 200,
  durationMs: 12.3,
  requestBytes: 0,
  responseBytes: 5,
  aborted: false,
};

describe('the line of a request', () => {
  it('is plain text without a terminal', () => {
    expect(requestLine(event, { named: false })).toBe('07:08:09 GET /index.html 200 12 ms');
    expect(requestLine({ ...event, status: null, aborted: true }, { named: true })).toBe(
      '07:08:09 web GET /index.html --- 12 ms aborted',
    );
    expect(requestLine({ ...event, replayOf: 'req_0' }, { named: false })).toMatch(/ replay$/);
  });

  it.each([20, 40, 60, 80, 200])('fits a terminal of %i columns, or at least 42', (width) => {
    const line = requestLine({ ...event, path: `/${'long/'.repeat(60)}` }, { width, named: false });
    expect(line.length).toBeLessThanOrEqual(Math.max(width, 42));
    expect(line).toContain('…');
    expect(line).toMatch(/ 200 {4}12 ms$/);
  });

  it('has its status in color', () => {
    const colours = pc.createColors(true);
    const painted = (status: number | null, aborted = false): string =>
      requestLine({ ...event, status, aborted }, { width: 80, named: false, colours });
    expect(painted(200)).toContain(colours.green('200'));
    expect(painted(304)).toContain(colours.cyan('304'));
    expect(painted(404)).toContain(colours.yellow('404'));
    expect(painted(500)).toContain(colours.red('500'));
    expect(painted(null)).toContain(colours.red('---'));
    expect(painted(200, true)).toContain(colours.red('200'));
  });

  it('says why the edge answered, in place of the duration', () => {
    const { type: _, requestBytes: __, responseBytes: ___, aborted: ____, ...facts } = event;
    const answered = { ...facts, type: 'edge-answered', status: 502, code: 'LOCAL_UNREACHABLE', rule: null } as const;
    expect(requestLine(answered, { named: false })).toBe('07:08:09 GET /index.html 502 service not running');
    const denied = { ...answered, status: 403, code: 'POLICY_DENIED', rule: 'office' };
    expect(requestLine(denied, { named: true })).toBe('07:08:09 web GET /index.html 403 rule office');
    expect(requestLine(denied, { width: 60, named: false })).toMatch(/^07:08:09 GET {5}\/index.html +403 rule office$/);
    expect(requestLine({ ...denied, rule: 'a\u001b[2Jb' }, { named: false })).not.toContain('\u001b');
  });

  it('counts requests answered by the edge that have no separate line', () => {
    const more = { type: 'edge-answered-more', tunnel: event.tunnel, count: 9980 } as const;
    expect(requestLine(more, { named: false })).toBe('… and 9980 more requests answered by the edge');
    expect(requestLine({ ...more, count: 1 }, { named: true })).toBe('web: … and 1 more request answered by the edge');
  });

  it('has the time of its own request, even if requests of two seconds take turns', () => {
    const times = [0, 999, 1000, 500, 61_000, 0].map((later) => {
      const line = requestLine({ ...event, at: event.at + later }, { named: false });
      return line.slice(0, 8);
    });
    expect(times).toEqual(['07:08:09', '07:08:09', '07:08:10', '07:08:09', '07:09:10', '07:08:09']);
  });

  it('contains no control characters from the request', () => {
    const line = requestLine({ ...event, path: '/\u001b[2J\r\n\u0007\u009bx', method: 'G\u001bT' }, { named: false });
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });

  it.each([
    [0.04, '0.0 ms'],
    [0.06, '0.1 ms'],
    [1, '1.0 ms'],
    [9.94, '9.9 ms'],
    [9.949999, '9.9 ms'],
    [9.96, '10 ms'],
    [999.4, '999 ms'],
    [999.6, '1.0 s'],
    [59_000, '59.0 s'],
    [600_000, '10 min'],
  ])('shows %f ms as %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});
