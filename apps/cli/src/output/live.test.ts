import type { SessionFacts, Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { FakeClock } from '@tunnel/testkit';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { LiveOutput } from './live.ts';
import { blockLines } from './live-block.ts';
import type { ShownRequest } from './output.ts';
import { TerminalScreen } from './terminal-screen.fixture.ts';

const SESSION: SessionFacts = {
  id: 'ses_1',
  regionId: 'fra',
  regionName: 'Frankfurt',
  account: 'ada@example.com',
  plan: 'free',
  dashboardUrl: 'https://tunnels.example/app',
  carriers: 4,
  latencyMs: 12.4,
};

type Shown = { -readonly [K in keyof Tunnel]: Tunnel[K] };

const tunnelOf = (fields: Partial<Tunnel> = {}): Shown =>
  ({
    name: 'http-3000',
    state: 'open',
    protocol: 'http',
    tunnelId: 'tun_1',
    publicUrl: 'https://blue-fox.tunnels.example',
    local: '127.0.0.1:3000',
    group: null,
    health: 'none',
    warnings: [],
    guard: null,
    counts: { connections: 0, open: 0, requests: 0, edgeAnswered: 0, bytesIn: 0, bytesOut: 0 },
    dropped: {},
    datagrams: null,
    peers: [],
    ...fields,
  }) as unknown as Shown;

const show = (
  options: { columns?: number; rows?: number; env?: Record<string, string>; session?: SessionFacts } = {},
) => {
  const screen = new TerminalScreen(options.columns, options.rows);
  const clock = new FakeClock();
  const io = { stdout: screen, stderr: screen, clock, env: options.env ?? { NO_COLOR: '1' } };
  const output = new LiveOutput(io, 'edge.tunnels.example:4040');
  const client = { session: options.session ?? SESSION };
  const connect = (): void => {
    output.onStatus({ type: 'connected', sessionId: 'ses_1', resumed: false });
    output.onClient(client);
    output.onInspector('http://127.0.0.1:4300/');
  };
  return { screen, clock, output, client, connect };
};

const BLOCK = [
  'Status      Online',
  'Account     ada@example.com (free plan)',
  'Region      fra (edge.tunnels.example:4040), 12 ms',
  'Dashboard   https://tunnels.example/app/tunnels/tun_1',
  'Inspector   http://127.0.0.1:4300/',
  'Forwarding  https://blue-fox.tunnels.example -> 127.0.0.1:3000',
  'Requests    No requests yet',
  'Ctrl-C to stop',
];

describe('the live view of a tunnel', () => {
  it('shows account, region, latency, dashboard, inspector and public URL', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    await clock.advance(1000);
    expect(screen.lines).toEqual(BLOCK);
  });

  it('is not redrawn while the terminal has not read the last redraw', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    const tunnel = tunnelOf();
    output.onStatus({ type: 'tunnel-opened', tunnel });
    await clock.advance(1000);
    const stalled = Object.assign(screen, { writableLength: 1 });
    const { writes } = screen;
    tunnel.counts = { ...tunnel.counts, requests: 1 };
    await clock.advance(60_000);
    expect(screen.writes).toBe(writes);
    stalled.writableLength = 0;
    await clock.advance(1000);
    expect(screen.lines).toContain('Requests    1 request, 0 B in, 0 B out');
  });

  it('shows only the known fields on an edge without a platform', async () => {
    const unknown = { regionName: null, account: null, plan: null, dashboardUrl: null, latencyMs: null };
    const { screen, clock, output, connect } = show({ session: { ...SESSION, ...unknown } });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    await clock.advance(1000);
    expect(screen.lines.map((line) => line.split(/ {2,}/)[0])).toEqual([
      ...['Status', 'Region', 'Inspector', 'Forwarding', 'Requests', 'Ctrl-C to stop'],
    ]);
    expect(screen.lines[1]).toBe('Region      fra (edge.tunnels.example:4040)');
  });

  it.each([
    [59_000, 'Online'],
    [61_000, 'Online for 1 min'],
    [3_700_000, 'Online for 1 h 1 min'],
    [90_000_000, 'Online for 1 d 1 h'],
  ])('says after %i ms %s', (upMs, status) => {
    const facts = {
      server: 'edge:4040',
      state: 'connected',
      upMs,
      draining: '',
      session: null,
      inspector: null,
    } as const;
    const look = { width: 80, colours: pc.createColors(false) };
    expect(blockLines({ ...facts, tunnels: [tunnelOf()], connections: [] }, look)[0]).toBe(`Status      ${status}`);
  });

  it('is not redrawn while nothing changes', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    await clock.advance(1000);
    const before = screen.written;
    await clock.advance(5000);
    expect(screen.written).toBe(before);
  });

  it('shows each request once above the block, and the totals in the block', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    const tunnel = tunnelOf();
    output.onStatus({ type: 'tunnel-opened', tunnel });
    await clock.advance(1000);
    const request = { id: 'req_1', tunnel, method: 'GET', path: '/hook', at: 0, replayOf: null } as const;
    const outcome = { status: 200, durationMs: 8, requestBytes: 0, responseBytes: 2, aborted: false } as const;
    output.onRequest({ type: 'request-finished', ...request, ...outcome });
    tunnel.counts = { connections: 1, open: 1, requests: 1, edgeAnswered: 0, bytesIn: 80, bytesOut: 120 };
    await clock.advance(250);
    expect(screen.lines).toHaveLength(BLOCK.length + 1);
    expect(screen.lines[0]).toMatch(/^\d\d:\d\d:\d\d GET {5}\/hook +200 +8\.0 ms$/);
    expect(screen.lines).toContain('Requests    1 request, 80 B in, 120 B out');
  });

  it('is redrawn at most 20 times a second, and requests without a line are counted', async () => {
    const { screen, clock, output, connect } = show({ rows: 5000 });
    const tunnel = tunnelOf();
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel });
    await clock.advance(1000);
    const request = { id: 'req_1', tunnel, method: 'GET', at: 0, replayOf: null } as const;
    const outcome = { status: 200, durationMs: 8, requestBytes: 0, responseBytes: 2, aborted: false } as const;
    const finish = (path: string): void => output.onRequest({ type: 'request-finished', ...request, ...outcome, path });
    const before = screen.writes;
    for (let ms = 0; ms < 1000; ms += 1) {
      for (let at = 0; at < 10; at += 1) finish('/hook');
      await clock.advance(1);
    }
    expect(screen.writes - before).toBeLessThanOrEqual(20);
    await clock.advance(1000);
    const shown = screen.lines.filter((line) => line.includes(' /hook ')).length;
    const counted = screen.lines.flatMap((line) => /^… and (\d+) more requests$/.exec(line)?.[1] ?? []);
    expect(shown + counted.reduce((sum, count) => sum + Number(count), 0)).toBe(10_000);
    // At a low rate every request gets a line.
    for (let at = 0; at < 5; at += 1) {
      finish(`/rest/${at}`);
      await clock.advance(250);
      expect(screen.lines.filter((line) => line.includes(`/rest/${at} `))).toHaveLength(1);
    }
  });

  it('prints no control characters from edge or platform', async () => {
    const hostile = 'a\u001b[2J\r\nb';
    const session = { ...SESSION, account: hostile, plan: hostile, regionName: hostile, dashboardUrl: hostile };
    const { screen, clock, output, connect } = show({ session });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf({ name: hostile, publicUrl: hostile }) });
    await clock.advance(1000);
    expect(screen.written).not.toContain('\u001b[2J');
    expect(screen.lines).toHaveLength(BLOCK.length);
  });

  it('is colored unless NO_COLOR is set', async () => {
    const { screen, clock, output, connect } = show({ env: {} });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    await clock.advance(1000);
    expect(screen.written).toContain('\u001b[32mOnline');
    expect(screen.lines).toEqual(BLOCK);
  });
});

describe('the live view of several tunnels', () => {
  const web = () => tunnelOf({ name: 'web', health: 'healthy' });
  const site = () => tunnelOf({ name: 'site', publicUrl: 'https://site.example', guard: 'password' });
  const dns = () =>
    tunnelOf({
      name: 'dns',
      protocol: 'udp',
      publicUrl: 'udp://tunnels.example:20000',
      datagrams: { path: 'udp', reason: '' },
    });

  it('has one label for each kind of row and aligns the tunnel names', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    for (const tunnel of [web(), site(), dns()]) output.onStatus({ type: 'tunnel-opened', tunnel });
    await clock.advance(1000);
    expect(screen.lines.slice(screen.lines.findIndex((line) => line.startsWith('Forwarding')))).toEqual([
      'Forwarding  web   https://blue-fox.tunnels.example -> 127.0.0.1:3000',
      '            site  https://site.example -> 127.0.0.1:3000',
      '            dns   udp://tunnels.example:20000 -> 127.0.0.1:3000',
      'Health      web   healthy',
      'Policy      site  password',
      'Datagrams   dns   over UDP',
      'Requests    web   No requests yet',
      '            site  No requests yet',
      'Traffic     dns   No datagrams yet',
      'Ctrl-C to stop',
    ]);
  });

  it('keeps the order when a tunnel is reopened, and aligns the names in request lines', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    const first = web();
    for (const tunnel of [first, site()]) output.onStatus({ type: 'tunnel-opened', tunnel });
    await clock.advance(1000);
    output.onRemoved({ name: 'web', tunnelId: 'tun_1', reason: 'reloaded' });
    output.onStatus({ type: 'tunnel-opened', tunnel: web() });
    const outcome = { status: 200, durationMs: 8, requestBytes: 0, responseBytes: 2, aborted: false, replayOf: null };
    for (const tunnel of [web(), site()]) {
      output.onRequest({ type: 'request-finished', id: 'req_1', tunnel, method: 'GET', path: '/a', at: 0, ...outcome });
    }
    await clock.advance(1000);
    const names = screen.lines.flatMap((line) => /^(?:Forwarding)? +(\w+) +https/.exec(line)?.[1] ?? []);
    expect(names).toEqual(['web', 'site']);
    expect(screen.lines.flatMap((line) => / (\w+ +)GET/.exec(line)?.[1] ?? [])).toEqual(['web  ', 'site ']);
  });

  it('puts a time in front of each event', async () => {
    const { screen, output, connect } = show();
    connect();
    const tunnel = web();
    output.onStatus({ type: 'tunnel-opened', tunnel });
    output.onStatus({ type: 'health', tunnel, healthy: true, reason: '', consecutiveFailures: 0 });
    output.onStatus({ type: 'reconnected', resumed: true });
    output.onReloaded({
      added: ['api'],
      removed: [],
      changed: ['web', 'db'],
      unchanged: 3,
      restart_required: ['server'],
    });
    expect(screen.lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, 'TIME '))).toEqual([
      'TIME web: healthy',
      'TIME reconnected, session resumed',
      'TIME reloaded: added 1, removed 0, changed 2, unchanged 3',
      '  added: api',
      '  changed: web, db',
      '  restart the client to apply: server',
    ]);
  });
});

describe('the end of the live view', () => {
  it('leaves one complete block on Ctrl-C, without the echo of the key', async () => {
    const { screen, clock, output, connect } = show();
    connect();
    const tunnel = tunnelOf();
    output.onStatus({ type: 'tunnel-opened', tunnel });
    await clock.advance(1000);
    screen.echo('^C');
    output.onStatus({ type: 'closing' });
    output.onStatus({ type: 'closed' });
    output.onEnd(0, [tunnel]);
    expect(screen.lines).toEqual([
      'Status      Stopped after 00:00:01',
      ...BLOCK.slice(1, 2),
      'Region      fra (edge.tunnels.example:4040)',
      ...BLOCK.slice(3, 4),
      ...BLOCK.slice(5, 7),
    ]);
  });

  it('leaves only the error for a refused tunnel, which was never shown as online', async () => {
    const { screen, clock, output, connect } = show();
    await clock.advance(250);
    connect();
    await clock.advance(250);
    const fault = Fault.fromWire('TUNNEL_SUBDOMAIN_IN_USE', "subdomain 'shop' is already in use");
    output.onStatus({ type: 'tunnel-error', tunnel: tunnelOf({ name: 'shop' }), fault, final: true });
    await clock.advance(250);
    output.onStatus({ type: 'closing' });
    output.onEnd(4, []);
    expect(screen.lines[0]).toContain("subdomain 'shop' is already in use");
    expect(screen.lines.every((line, at) => at === 0 || line.startsWith('  '))).toBe(true);
    expect(screen.written).not.toMatch(/Online|127\.0\.0\.1:4300/);
  });
});

describe('the live view in a resized or small window', () => {
  const rowsNamed = (screen: TerminalScreen, name: string): number =>
    screen.lines.filter((line) => line.startsWith(name)).length;

  it.each([20, 30, 45, 60])('shows every address in full at %i columns, and is redrawn in place', async (columns) => {
    const { screen, clock, output, connect } = show({ columns });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    for (let second = 0; second < 5; second += 1) await clock.advance(1000);
    const text = screen.lines.join('');
    expect(text).toContain('https://blue-fox.tunnels.example');
    expect(text).toContain('https://tunnels.example/app/tunnels/tun_1');
    expect(rowsNamed(screen, 'Status')).toBe(1);
    expect(screen.lines.at(-1)).toBe('Ctrl-C to stop');
  });

  it('shows a single block after several resizes', async () => {
    const { screen, clock, output, connect } = show({ columns: 100 });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    await clock.advance(1000);
    for (const columns of [50, 33, 70, 24, 100]) {
      screen.resize(columns);
      await clock.advance(1000);
      expect([columns, rowsNamed(screen, 'Status'), rowsNamed(screen, 'Requests')]).toEqual([columns, 1, 1]);
    }
    expect(screen.lines).toEqual(BLOCK);
  });

  const requestOf = (path: string, tunnel = tunnelOf()): ShownRequest => ({
    type: 'request-finished',
    id: 'req_1',
    tunnel,
    method: 'GET',
    path,
    at: 0,
    replayOf: null,
    status: 500,
    durationMs: 3.1,
    requestBytes: 0,
    responseBytes: 2,
    aborted: false,
  });

  it('breaks no request line and no status line after a resize', async () => {
    const { screen, clock, output, connect } = show({ columns: 100 });
    const tunnel = tunnelOf();
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel });
    for (const path of ['/first', `/${'long/'.repeat(30)}`]) output.onRequest(requestOf(path));
    await clock.advance(1000);
    output.onStatus({ type: 'reconnected', resumed: true });
    output.onRequest(requestOf('/last'));
    await clock.advance(1000);
    for (const columns of [60, 45, 90, 44, 120]) {
      screen.resize(columns);
      await clock.advance(1000);
      const above = screen.lines.slice(0, 4);
      expect(above.map((line) => line.replace(/^[\d:]{8} /, '').split(/ +/)[1])).toEqual([
        ...['/first', expect.stringMatching(/^\/long.*…$/), 'session', '/last'],
      ]);
      expect(above.filter((line) => line.endsWith('500   3.1 ms'))).toHaveLength(3);
      expect(screen.lines[4]).toMatch(/^Status /);
    }
  });

  it('shows no line twice after scrolling and narrowing', async () => {
    const { screen, clock, output, connect } = show({ columns: 100, rows: 20 });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    await clock.advance(1000);
    for (let at = 0; at < 30; at += 1) {
      output.onRequest(requestOf(`/${at}/`));
      await clock.advance(250);
    }
    screen.resize(60);
    await clock.advance(1000);
    for (let at = 0; at < 30; at += 1) {
      expect([at, screen.lines.filter((line) => `${line} `.includes(` /${at}/ `)).length]).toEqual([at, 1]);
    }
    // Five request lines, of two rows each after the resize, are on the screen above the eight rows of the block.
    const seen = screen.lines.filter((line) => line.includes(' GET ')).slice(-5);
    expect(seen.every((line) => line.endsWith('500   3.1 ms'))).toBe(true);
  });

  it('does not grow without requests when the window has fewer rows than the block', async () => {
    const { screen, clock, output, connect } = show({ rows: 6 });
    connect();
    output.onStatus({ type: 'tunnel-opened', tunnel: tunnelOf() });
    for (let second = 0; second < 5; second += 1) await clock.advance(1000);
    expect(screen.lines).toHaveLength(5);
    expect(screen.lines.at(-1)).toBe('… and 4 more lines');
  });
});
