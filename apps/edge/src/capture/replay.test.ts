import * as http from 'node:http';
import type * as net from 'node:net';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type HttpStand, startHttpStand, talk } from '../ingress/http/http.fixture.ts';
import { startRecordingH2c, startRecordingService } from '../ingress/http/service.fixture.ts';
import { MuxUpstream } from '../upstream/upstream.ts';
import { captureStore } from './capture.fixture.ts';
import type { CaptureStore } from './capture-store.ts';
import { CaptureRecorder } from './recorder.ts';
import { REPLAY_TIMEOUT_MS, REPLAYS_AT_ONCE_PER_OWNER, Replays } from './replay.ts';

interface Seen {
  readonly line: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

let seen: Seen[];
let answer: (response: http.ServerResponse) => void;
let service: http.Server;
let stand: HttpStand;
let store: CaptureStore;
let replays: Replays;

beforeEach(async () => {
  seen = [];
  answer = (response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('hello');
  service = http.createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString('latin1');
    });
    request.on('end', () => {
      seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      answer(response);
    });
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  store = captureStore().store;
  stand = await startHttpStand((service.address() as net.AddressInfo).port, { captures: store });
  replays = new Replays({ store, clock: stand.clock, http: stand.ingress });
});

afterEach(() => {
  stand.stop();
  service.closeAllConnections();
  service.close();
});

/** Sends a request as a visitor and returns its capture. */
const visit = async (...lines: string[]): Promise<CaptureRecorder> => {
  await talk(stand.port, [lines[0], 'Host: web.edge.test', 'Connection: close', ...lines.slice(1)].join('\r\n'));
  const [newest] = store.list('tun_1', 1).recorders;
  if (newest === undefined) throw new Error('nothing was captured');
  await eventually(() => expect(newest.durationMs).not.toBeNull());
  return newest;
};

const replay = (original: CaptureRecorder, tunnel: HttpStand['tunnel'] | undefined = stand.tunnel) =>
  replays.replay({ tunnel, original, visitorAddress: '10.1.2.3' });

it('a replay sends the service the same request plus the id of the original, and is captured separately', async () => {
  const original = await visit(
    'POST /pay?n=1 HTTP/1.1',
    'Authorization: Bearer s3cret',
    'Content-Length: 3',
    '',
    'a\xffc',
  );
  answer = (response) => response.writeHead(402, { 'content-type': 'text/plain' }).end('poor');
  const again = await replay(original);
  const [first, second] = seen;
  expect(second).toMatchObject({ line: 'POST /pay?n=1', body: 'a\xffc' });
  expect(second?.headers).toMatchObject({
    host: 'web.edge.test',
    authorization: 'Bearer s3cret',
    'content-length': '3',
    'x-forwarded-for': '10.1.2.3',
    'x-forwarded-host': 'web.edge.test',
    'x-forwarded-proto': 'http',
  });
  const { 'x-tunnel-replay': of, ...others } = second?.headers ?? {};
  expect(of).toBe(store.idOf(original));
  expect(Object.keys(others).sort()).toEqual(Object.keys(first?.headers ?? {}).sort());
  expect(again).toMatchObject({ status: 402, aborted: false, fault: null, responseBody: { kept: 'poor' } });
  expect(again.info.replayOf).toBe(store.idOf(original));
  expect(store.list('tun_1', 10).recorders).toEqual([again, original]);
  expect(stand.tunnel.counters.requests).toBe(2);
});

it('a chunked body is replayed with its length, without Expect and Trailer, and can be replayed again', async () => {
  const original = await visit(
    'PUT /x HTTP/1.1',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
    'Trailer: X-Sum',
    '',
    '4\r\nwiki\r\n5\r\npedia\r\n0\r\nX-Sum: 1\r\n\r\n',
  );
  const again = await replay(await replay(original));
  expect(seen.map(({ body }) => body)).toEqual(['wikipedia', 'wikipedia', 'wikipedia']);
  expect(seen[2]?.headers).toMatchObject({ 'content-length': '9' });
  for (const name of ['transfer-encoding', 'expect', 'trailer']) expect(seen[2]?.headers).not.toHaveProperty(name);
  expect(again.status).toBe(200);
});

it('an edited replay sends the changes, with stored secrets in place of [redacted]', async () => {
  const original = await visit(
    'POST /pay?key=k3y HTTP/1.1',
    'Authorization: Bearer s3cret',
    'Content-Type: application/json',
    'Content-Length: 28',
    '',
    '{"amount":1,"token":"t0ken"}',
  );
  const again = await replays.replay({
    tunnel: stand.tunnel,
    original,
    visitorAddress: '10.1.2.3',
    edit: {
      method: 'PUT',
      path: '/refund?key=[redacted]',
      headers: [
        ['authorization', '[redacted]'],
        ['content-type', 'application/json'],
        ['x-attempt', '2'],
      ],
      body: '{"amount":25,"token":"[redacted]"}',
    },
  });
  expect(seen[1]).toMatchObject({ line: 'PUT /refund?key=k3y', body: '{"amount":25,"token":"t0ken"}' });
  expect(seen[1]?.headers).toMatchObject({
    host: 'web.edge.test',
    authorization: 'Bearer s3cret',
    'x-attempt': '2',
    'content-length': '29',
  });
  expect(again.info).toMatchObject({ replayOf: store.idOf(original), isEdited: true });
  expect(again).toMatchObject({ hasWholeBody: true, status: 200 });
  const once = replays.replay({ tunnel: stand.tunnel, original, visitorAddress: '', edit: { path: 'no' } });
  await expect(once).rejects.toMatchObject({ code: 'API_BAD_REQUEST', message: /path: must begin with/ });
  expect(seen).toHaveLength(2);
});

it('a request without a body is replayed without a body', async () => {
  await replay(await visit('GET / HTTP/1.1', '', ''));
  await replay(await visit('POST / HTTP/1.1', 'Content-Length: 0', '', ''));
  expect(seen.map(({ headers }) => headers['content-length'])).toEqual([undefined, undefined, '0', '0']);
});

it('a request that cannot be replayed unchanged is refused with the reason', async () => {
  const long = await visit('POST / HTTP/1.1', 'Content-Length: 20000', '', 'x'.repeat(20_000));
  await expect(replay(long)).rejects.toMatchObject({
    code: 'CAPTURE_NOT_REPLAYABLE',
    message: 'the request cannot be replayed: the body is larger than 16384 bytes',
  });
  const fine = await visit('GET / HTTP/1.1', '', '');
  await expect(replays.replay({ tunnel: undefined, original: fine, visitorAddress: '' })).rejects.toMatchObject({
    message: 'the request cannot be replayed: the tunnel is closed',
  });
  const shy = { ...stand.tunnel, http: { hostHeader: null, localProtocol: 'http1', capture: false } } as const;
  await expect(replay(fine, shy)).rejects.toMatchObject({ code: 'CAPTURE_NOT_REPLAYABLE' });
  expect(seen).toHaveLength(2);
});

it('a replay fails and is captured if the service is down or hangs up, or the client is away', async () => {
  const original = await visit('GET / HTTP/1.1', '', '');
  answer = (response) => response.destroy();
  await expect(replay(original)).rejects.toMatchObject({ code: 'LOCAL_CLOSED' });
  const away = { ...stand.tunnel, upstream: new MuxUpstream() };
  await expect(replay(original, away)).rejects.toMatchObject({ code: 'TUNNEL_AWAY' });
  stand.localPort = 1;
  await expect(replay(original)).rejects.toMatchObject({ code: 'LOCAL_UNREACHABLE' });
  const ends = store.list('tun_1', 3).recorders.map(({ status, fault }) => [status, fault]);
  expect(ends).toEqual([
    [502, 'LOCAL_UNREACHABLE'],
    [502, 'TUNNEL_AWAY'],
    [502, 'LOCAL_CLOSED'],
  ]);
});

it('a replay times out at a silent service; an endless response is cut off and shown so far', async () => {
  const original = await visit('GET / HTTP/1.1', '', '');
  let aborted = 0;
  answer = (response) => void response.on('close', () => (aborted += 1));
  const silent = replay(original);
  silent.catch(() => {});
  await eventually(() => expect(seen).toHaveLength(2));
  await stand.clock.advance(REPLAY_TIMEOUT_MS);
  await expect(silent).rejects.toMatchObject({ code: 'LOCAL_TIMEOUT', status: 504 });

  answer = (response) => {
    response.on('close', () => (aborted += 1));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
  };
  const endless = replay(original);
  await eventually(() => expect(store.list('tun_1', 1).recorders[0]?.responseBody?.kept).toBe('data: 1\n\n'));
  await stand.clock.advance(REPLAY_TIMEOUT_MS);
  expect(await endless).toMatchObject({ status: 200, aborted: true, responseBody: { kept: 'data: 1\n\n' } });
  await eventually(() => expect(aborted).toBe(2));
});

it('the number of simultaneous replays of an account is limited', async () => {
  const original = await visit('GET / HTTP/1.1', '', '');
  const waiting: http.ServerResponse[] = [];
  answer = (response) => void waiting.push(response);
  const all = Array.from({ length: REPLAYS_AT_ONCE_PER_OWNER }, () => replay(original));
  await expect(replay(original)).rejects.toMatchObject({ code: 'CAPTURE_REPLAYS_BUSY' });
  await eventually(() => expect(waiting).toHaveLength(REPLAYS_AT_ONCE_PER_OWNER));
  for (const response of waiting) response.end();
  await Promise.all(all);
  answer = (response) => response.end();
  expect((await replay(original)).status).toBe(200);
});

it('a local HTTP/2 service gets the same request again', async () => {
  const h2c = await startRecordingH2c('h2c');
  const own = await startHttpStand(h2c.port, { captures: store, http: { localProtocol: 'h2c' } });
  const visited = 'POST /pay HTTP/1.1\r\nHost: web.edge.test\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc';
  await talk(own.port, visited);
  const [original] = store.list('tun_1', 1).recorders;
  if (original === undefined) throw new Error('nothing was captured');
  await eventually(() => expect(original.durationMs).not.toBeNull());
  const ownReplays = new Replays({ store, clock: own.clock, http: own.ingress });
  const again = await ownReplays.replay({ tunnel: own.tunnel, original, visitorAddress: '10.1.2.3' });
  expect(again).toMatchObject({ status: 200, fault: null, hasWholeBody: true });
  expect(h2c.asked).toHaveLength(2);
  expect(h2c.asked[1]).toEqual(h2c.asked[0]);
  own.stop();
  h2c.close();
});

it('a fault at the time limit of a replay rejects the replay and is reported as replay.timer', async () => {
  const reports: string[] = [];
  const mute = await startRecordingService('mute', (_request, response) => {
    if (mute.asked.length === 1) response.end('once');
  });
  const own = await startHttpStand(mute.port, { captures: store, report: (_error, where) => reports.push(where) });
  await talk(own.port, 'GET / HTTP/1.1\r\nHost: web.edge.test\r\nConnection: close\r\n\r\n');
  const [original] = store.list('tun_1', 1).recorders;
  if (original === undefined) throw new Error('nothing was captured');
  await eventually(() => expect(original.durationMs).not.toBeNull());
  const ownReplays = new Replays({ store, clock: own.clock, http: own.ingress });
  const replaying = ownReplays.replay({ tunnel: own.tunnel, original, visitorAddress: '10.1.2.3' });
  // The handler is added before the clock advances, because the promise is rejected during the advance.
  const outcome = replaying.then(
    () => null,
    (error: unknown) => error,
  );
  await eventually(() => expect(mute.asked).toHaveLength(2));
  vi.spyOn(CaptureRecorder.prototype, 'finish').mockImplementationOnce(() => {
    throw new Error('raised on purpose');
  });
  await own.clock.advance(REPLAY_TIMEOUT_MS);
  expect(await outcome).toMatchObject({ code: 'INTERNAL' });
  expect(reports).toEqual(['replay.timer']);
  own.stop();
  mute.close();
});
