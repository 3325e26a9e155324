// `tunnel list`, `tunnel requests` and `tunnel replay` with a login at a scripted platform.
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { type LoggedIn, logIn, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';

let login: LoggedIn;
let platform: ScriptedPlatform;

beforeEach(async () => {
  login = await logIn();
  platform = login.platform;
});
afterEach(() => login.close());

const tunnel = (id: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: `log-${id}`,
  tunnel_id: `tun_${id}`,
  protocol: 'http',
  label: `${id}-label`,
  name: id,
  public_url: `https://${id}.tunnels.example`,
  client_name: 'laptop',
  registered_at: '2030-01-01T00:00:00.000Z',
  unregistered_at: null,
  region_id: 'fra',
  request_count: 3,
  bytes_proxied: 4096,
  ...more,
});

const request = (id: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id,
  tunnel_id: 'tun_web',
  at: '2030-01-01T00:00:00.000Z',
  method: 'POST',
  path: `/${id}`,
  status: 200,
  duration_ms: 8,
  request_headers: {},
  response_headers: {},
  request_size: 0,
  response_size: 0,
  request_body: null,
  response_body: null,
  aborted: false,
  error: null,
  replayable: true,
  ...more,
});

const start = (args: string[], options: Partial<TestIoOptions> = {}): { io: TestIo; code: Promise<number> } => {
  const io = makeTestIo({ home: login.home.path, env: { NO_COLOR: '1' }, ...options });
  return { io, code: run(args, io) };
};

const outcome = async (args: string[], options?: Partial<TestIoOptions>) => {
  const { io, code } = start(args, options);
  return { code: await code, out: io.out(), err: io.err() };
};

describe('`tunnel list`', () => {
  it('shows the URL and the computer of every open tunnel in every region', async () => {
    platform.tunnels = [tunnel('web'), tunnel('db', { protocol: 'tcp', region_id: 'nyc', client_name: 'server' })];
    const { code, out, err } = await outcome(['list']);
    expect([code, err]).toEqual([0, '']);
    expect(platform.paths()).toEqual(['GET /usage/tunnels?state=active&limit=100&offset=0']);
    const [heading, web, db] = out.split('\n');
    expect(heading).toMatch(/^NAME +URL +COMPUTER +USED +SINCE +ID$/);
    expect(web).toMatch(
      /^web {3}https:\/\/web\.tunnels\.example {2}laptop {4}3 requests, 4\.1 kB +2030-.* {2}tun_web$/,
    );
    expect(db).toMatch(/server +3 connections, 4\.1 kB/);
  });

  it('never cuts a public URL, even on a narrow terminal', async () => {
    platform.tunnels = [tunnel('web')];
    const { out } = await outcome(['list'], { isTTY: true, columns: 40 });
    const [first, second] = out.split('\n');
    expect(first).toBe('web  https://web.tunnels.example');
    expect(second).toMatch(/^ {2}laptop, 3 requests, 4\.1 kB, .*…$/);
    expect(second?.length).toBeLessThan(40);
  });

  it('reads all pages of a long list', async () => {
    platform.tunnels = Array.from({ length: 250 }, (_, at) => tunnel(`web-${at}`));
    expect(JSON.parse((await outcome(['list', '--json'])).out)).toHaveLength(250);
    expect(platform.asks).toHaveLength(3);
  });

  it('says how to open a tunnel when there is none, and prints [] with --json', async () => {
    expect((await outcome(['list'])).out).toBe('No open tunnels.\n  Open a tunnel: tunnel http 3000\n');
    expect((await outcome(['list', '--json'])).out).toBe('[]\n');
  });

  it('strips control characters from names, computers and URLs', async () => {
    platform.tunnels = [tunnel('web', { name: 'a\u001b[2J', client_name: 'b\r\nc', public_url: 'd\u009b2J' })];
    expect((await outcome(['list'])).out).not.toMatch(/[\u001b\u009b\r]/);
  });
});

describe('`tunnel requests`', () => {
  beforeEach(() => {
    platform.tunnels = [tunnel('web'), tunnel('db', { protocol: 'tcp' })];
    platform.captures.set('tun_web', [request('req_2', { status: 500 }), request('req_1', { replay_of: 'req_0' })]);
  });

  it.each(['tun_web', 'web', 'web-label', 'https://web.tunnels.example/'])('finds the tunnel by %s', async (wanted) => {
    const { code, out } = await outcome(['requests', wanted]);
    expect(code).toBe(0);
    expect(out.split('\n').map((line) => line.replace(/^[\d: -]+/, ''))).toEqual([
      'POST  /req_1  200    8.0 ms  req_1 replay',
      'POST  /req_2  500    8.0 ms  req_2',
      '',
    ]);
  });

  it('aligns its columns in a pipe for any path length, and cuts no path', async () => {
    const long = `/${'x'.repeat(90)}`;
    const paths = ['/', '/a/longer/path', long].map((path, at) =>
      request(`req_${at}`, { path, method: at === 1 ? 'GET' : 'DELETE', duration_ms: 10 ** (at + 1) }),
    );
    platform.captures.set('tun_web', paths);
    const lines = (await outcome(['requests', 'web'])).out.trimEnd().split('\n');
    expect(lines.map((line) => line.slice(21))).toEqual([
      `DELETE  ${long}  200     1.0 s  req_2`,
      `GET     ${'/a/longer/path'.padEnd(60)}  200    100 ms  req_1`,
      `DELETE  ${'/'.padEnd(60)}  200     10 ms  req_0`,
    ]);
  });

  it('names the rule that rejected a request', async () => {
    const by = (index: number) => ({
      policy: { answered_by: { index, name: null, action: 'deny' }, matched: [], user: null },
    });
    platform.captures.set('tun_web', [
      request('req_3', { status: 403, ...by(2) }),
      request('req_2', { status: 451, ...by(0) }),
      request('req_1', { policy: { answered_by: null, matched: [1], user: 'ann' } }),
    ]);
    const { out } = await outcome(['requests', 'web']);
    expect(out.split('\n').map((line) => line.replace(/^.*ms {2}/, ''))).toEqual([
      'req_1',
      "req_2 operator's rule",
      'req_3 rule 2',
      '',
    ]);
  });

  it('prints one JSON object per line with --json, including everything captured', async () => {
    const { out } = await outcome(['requests', 'web', '--json', '-n', '1']);
    expect(JSON.parse(out)).toEqual(request('req_2', { status: 500 }));
  });

  it('lists the matching tunnels and exits with 2 when a name is ambiguous', async () => {
    platform.tunnels = [tunnel('web'), tunnel('web', { tunnel_id: 'tun_other', client_name: 'server' })];
    const { code, out, err } = await outcome(['requests', 'web']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain("tunnel: 'web' matches 2 open tunnels\n  Use the tunnel id instead.\n");
    expect(err).toMatch(/laptop.* tun_web\n.*server.* tun_other\n$/);
    expect((await outcome(['requests', 'tun_other'])).code).toBe(0);
  });

  it('exits with 2 for an unknown tunnel and for a tcp tunnel', async () => {
    const unknown = await outcome(['requests', 'shop']);
    expect([unknown.code, unknown.err]).toEqual([
      2,
      "tunnel: you have no open tunnel 'shop'\n  List your tunnels with `tunnel list`.\n",
    ]);
    const other = await outcome(['requests', 'db']);
    expect([other.code, other.err]).toEqual([2, "tunnel: 'db' is a tcp tunnel: only http tunnels capture requests.\n"]);
  });

  it('says "No requests yet" for a tunnel without requests', async () => {
    platform.tunnels = [tunnel('web', { request_count: 0 })];
    platform.captures.clear();
    expect((await outcome(['requests', 'web'])).out).toBe('No requests yet\n');
  });

  it('with -f prints each new request once, after it has finished, and ends with 0 on Ctrl-C', async () => {
    const clock = new FakeClock();
    const { io, code } = start(['requests', 'web', '-f', '-n', '1'], { clock });
    const ids = (): string[] => [...io.out().matchAll(/ (req_\d)( replay)?$/gm)].map((match) => match[1] ?? '');
    await eventually(() => expect(ids()).toEqual(['req_2']));
    const kept = platform.captures.get('tun_web') ?? [];
    platform.captures.set('tun_web', [
      request('req_4', { status: null, duration_ms: null }),
      request('req_3'),
      ...kept,
    ]);
    await eventually(async () => {
      await clock.advance(1000);
      expect(ids()).toEqual(['req_2', 'req_3']);
    });
    platform.captures.set('tun_web', [request('req_4'), request('req_3'), ...kept]);
    await eventually(async () => {
      await clock.advance(1000);
      expect(ids()).toEqual(['req_2', 'req_3', 'req_4']);
    });
    io.signal('SIGINT');
    await clock.advance(1000);
    expect([await code, io.err()]).toEqual([0, '']);
  });

  it('with -f prints no older request as new, and warns when the edge has dropped some', async () => {
    const many = (from: number): Record<string, unknown>[] =>
      Array.from({ length: 200 }, (_, at) => request(`req_${from + 199 - at}`));
    platform.captures.set('tun_web', many(100));
    const clock = new FakeClock();
    const { io, code } = start(['requests', 'web', '-f', '-n', '1'], { clock });
    const ids = (): string[] => [...io.out().matchAll(/ (req_\d+)$/gm)].map((match) => match[1] ?? '');
    await eventually(() => expect(ids()).toEqual(['req_299']));
    platform.captures.set('tun_web', many(260));
    await eventually(async () => {
      await clock.advance(1000);
      expect([ids().length, ids().at(1), ids().at(-1)]).toEqual([161, 'req_300', 'req_459']);
    });
    expect(io.err()).toBe('');
    platform.captures.set('tun_web', many(700));
    await eventually(async () => {
      await clock.advance(1000);
      expect(ids()).toHaveLength(361);
    });
    expect(io.err()).toBe('tunnel: note: some requests are not shown, because the edge keeps only the latest.\n');
    io.signal('SIGINT');
    await clock.advance(1000);
    expect(await code).toBe(0);
  });

  it('with -n reads as many pages as needed, back to the oldest kept request, and accepts at most 200', async () => {
    platform.captures.set(
      'tun_web',
      Array.from({ length: 200 }, (_, at) => request(`req_${200 - at}`)),
    );
    const shown = async (lines: string): Promise<string[]> =>
      [...(await outcome(['requests', 'web', '-n', lines])).out.matchAll(/ (req_\d+)$/gm)].map(
        (match) => match[1] ?? '',
      );
    const all = await shown('200');
    expect([all.length, all.at(0), all.at(-1)]).toEqual([200, 'req_1', 'req_200']);
    const most = await shown('130');
    expect([most.length, most.at(0), most.at(-1)]).toEqual([130, 'req_71', 'req_200']);
    const more = await outcome(['requests', 'web', '-n', '201']);
    expect([more.code, more.err]).toEqual([2, expect.stringContaining('Use 0-200.')]);
    expect((await outcome(['requests', '--help'])).out).toMatch(/up\s+to\s+200/);
  });

  it('says that capture is off when a tunnel keeps no requests', async () => {
    platform.tunnels = [tunnel('web', { request_count: 5 })];
    platform.captures.clear();
    expect((await outcome(['requests', 'web'])).out).toBe('Capture is off for this tunnel.\n');
  });

  it('with -f reports an unreachable region once and keeps following', async () => {
    const clock = new FakeClock();
    const { io, code } = start(['requests', 'web', '-f'], { clock });
    await eventually(() => expect(io.out()).toContain('req_2'));
    const away = JSON.stringify({ error: 'region fra does not answer', code: 'EDGE_AWAY', request_id: 'r' });
    for (let times = 0; times < 2; times += 1) platform.trap('/usage/tunnels/tun_web/requests', 502, away);
    await eventually(async () => {
      await clock.advance(1000);
      expect(io.err()).toContain('region fra does not answer; retrying\n');
    });
    platform.captures.get('tun_web')?.unshift(request('req_3'));
    await eventually(async () => {
      await clock.advance(1000);
      expect(io.out()).toContain('req_3');
    });
    expect(io.err().match(/retrying/g)).toHaveLength(1);
    io.signal('SIGINT');
    await clock.advance(1000);
    expect(await code).toBe(0);
  });
});

describe('`tunnel replay`', () => {
  beforeEach(() => {
    platform.tunnels = [tunnel('web'), tunnel('db', { protocol: 'tcp' }), tunnel('api')];
    platform.captures.set('tun_api', [request('req_7', { status: 201 })]);
  });

  it('replays the request on the tunnel that captured it, and never asks a tcp tunnel', async () => {
    const { code, out } = await outcome(['replay', 'req_7']);
    expect([code, out]).toEqual([0, 'Replayed: 201 in 8.0 ms. New id: req_new\n']);
    expect(platform.paths().some((path) => path.includes('tun_db'))).toBe(false);
    const json = await outcome(['replay', 'req_7', '--json']);
    expect(JSON.parse(json.out)).toMatchObject({ id: 'req_new', replay_of: 'req_7' });
  });

  it("succeeds even when another tunnel's requests cannot be read", async () => {
    const busy = JSON.stringify({ error: 'too many replays', code: 'RATE_LIMITED', request_id: 'r' });
    platform.trap('/usage/tunnels/tun_web/requests', 429, busy);
    expect(await outcome(['replay', 'req_7'])).toMatchObject({ code: 0, err: '' });
  });

  it.each(['', '.', '..'])('refuses %j as an id without a request', async (id) => {
    expect((await outcome(['replay', id])).code).toBe(2);
    expect(platform.asks).toEqual([]);
  });

  it('exits with 2 when no tunnel has the request, and with 5 when an unreachable region may have it', async () => {
    const unknown = await outcome(['replay', 'req_8']);
    expect([unknown.code, unknown.err]).toEqual([
      2,
      "tunnel: none of your open tunnels captured a request 'req_8'\n  List the captured requests with `tunnel requests <tunnel>`.\n",
    ]);
    const away = JSON.stringify({ error: 'region fra does not answer', code: 'EDGE_AWAY', request_id: 'r' });
    platform.trap('/usage/tunnels/tun_web/requests', 502, away);
    const lost = await outcome(['replay', 'req_8']);
    expect([lost.code, lost.err]).toEqual([5, expect.stringContaining('region fra does not answer')]);
  });
});

it('`tunnel requests` on a terminal aligns its columns and stays within the width', async () => {
  platform.tunnels = [tunnel('web')];
  const long = request('req_26jzv6vuad2_3', { path: `/${'long/'.repeat(40)}`, at: new Date().toISOString() });
  platform.captures.set('tun_web', [long, request('req_1', { replay_of: 'req_0' })]);
  const { out } = await outcome(['requests', 'web'], { isTTY: true, columns: 100 });
  const [heading = '', first = '', second = ''] = out.split('\n');
  expect(heading).toMatch(/^TIME {5}METHOD {2}PATH +TOTAL {2}ID$/);
  expect(heading.indexOf('ID')).toBe(second.indexOf('req_26'));
  expect(first).toMatch(/^2030-01-01 .* req_1 replay$/);
  expect(second).toMatch(/^\d\d:\d\d:\d\d POST {4}\/long.*… 200 {3}8\.0 ms {2}req_26jzv6vuad2_3$/);
  expect([first.indexOf(' 200 '), Math.max(first.length, second.length) < 100]).toEqual([
    second.indexOf(' 200 '),
    true,
  ]);
});
