// Requests to untrusted URLs over real sockets: the response, refused addresses, and limits.
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { problemOfAddress } from '@tunnel/rules/net';
import { eventually, FakeClock, testCertificate } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createGuardedFetch, type GuardedFetchOptions } from './guarded-fetch.ts';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }
});

const start = async (answer: RequestListener, isTls = false): Promise<number> => {
  const server = isTls ? createTlsServer(testCertificate(), answer) : createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};
const fetchOf = (more: Partial<GuardedFetchOptions> = {}, allowPrivate = true) =>
  createGuardedFetch({
    problemOfAddress: (address) => problemOfAddress(address, allowPrivate),
    clock: systemClock,
    ...more,
  });
const BOUNDS = { maxBytes: 1024, timeoutMs: 20_000 };
const here = () => Promise.resolve(['127.0.0.1']);

it('guardedFetch returns status, headers and body, and sends the host name of the URL', async () => {
  const asked: (string | undefined)[] = [];
  const port = await start((request, response) => {
    asked.push(request.method, request.headers.host, request.url, request.headers['accept']);
    response.writeHead(404, { 'cache-control': 'max-age=60' }).end('{"a":1}');
  });
  const bounds = { ...BOUNDS, headers: { accept: 'application/json' } };
  const outcome = await fetchOf({ lookup: here })(`http://client.example:${port}/x?y#z`, bounds);
  expect(outcome).toMatchObject({ kind: 'answer', status: 404, headers: { 'cache-control': 'max-age=60' } });
  expect(outcome.kind === 'answer' && outcome.body.toString()).toBe('{"a":1}');
  expect(asked).toEqual(['GET', `client.example:${port}`, '/x?y', 'application/json']);
});

it('guardedFetch sends a body as a POST', async () => {
  const port = await start((request, response) => void request.pipe(response.writeHead(200)));
  const outcome = await fetchOf()(`http://127.0.0.1:${port}/`, { ...BOUNDS, body: Buffer.from('hello') });
  expect(outcome.kind === 'answer' && outcome.body.toString()).toBe('hello');
});

it('guardedFetch returns a redirect and does not follow it', async () => {
  let asked = 0;
  const port = await start((_request, response) => {
    asked += 1;
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  expect(await fetchOf()(`http://127.0.0.1:${port}/`, BOUNDS)).toMatchObject({ kind: 'answer', status: 302 });
  expect(asked).toBe(1);
});

it.each([
  [
    'with its length',
    (bytes: number): RequestListener =>
      (_, response) =>
        void response.end(Buffer.alloc(bytes)),
  ],
  [
    'in chunks',
    (bytes: number): RequestListener =>
      (_, response) => {
        response.write(Buffer.alloc(bytes - 1));
        response.end(Buffer.alloc(1));
      },
  ],
])('a response of exactly the size limit is accepted, and one more byte is rejected: %s', async (_how, answer) => {
  const exact = await start(answer(1024));
  expect(await fetchOf()(`http://127.0.0.1:${exact}/`, BOUNDS)).toMatchObject({ kind: 'answer' });
  const over = await start(answer(1025));
  expect(await fetchOf()(`http://127.0.0.1:${over}/`, BOUNDS)).toEqual({
    kind: 'too_long',
    reason: '127.0.0.1 sent more than 1024 bytes',
  });
});

it('an endless response is cut, and its connection closed', async () => {
  let isClosed = false;
  const port = await start((_request, response) => {
    response.on('close', () => (isClosed = true));
    const more = (): void => {
      for (let taken = true; taken && !response.destroyed; ) taken = response.write(Buffer.alloc(65_536));
    };
    response.on('drain', more);
    more();
  });
  expect((await fetchOf()(`http://127.0.0.1:${port}/`, BOUNDS)).kind).toBe('too_long');
  await eventually(() => expect(isClosed).toBe(true));
});

it.each([
  ['says nothing', () => {}],
  ['drips', (_request, response) => void response.writeHead(200, { 'content-length': '100' }).write('{')],
] as [string, RequestListener][])('guardedFetch times out when the server %s', async (_how, answer) => {
  const clock = new FakeClock();
  let arrived = 0;
  const port = await start((request, response) => {
    arrived += 1;
    answer(request, response);
  });
  const outcome = fetchOf({ clock })(`http://127.0.0.1:${port}/`, { ...BOUNDS, timeoutMs: 5000 });
  await eventually(() => expect(arrived).toBe(1));
  await clock.advance(5000);
  expect(await outcome).toEqual({ kind: 'timeout', reason: '127.0.0.1 did not respond within 5 s' });
  expect(clock.pendingTimers).toBe(0);
});

it('guardedFetch times out when the name server does not respond', async () => {
  const clock = new FakeClock();
  const outcome = fetchOf({ clock, lookup: () => new Promise(() => {}) })('https://slow.example/', BOUNDS);
  await clock.advance(BOUNDS.timeoutMs);
  expect((await outcome).kind).toBe('timeout');
});

it('guardedFetch stops when its caller aborts, before or during the request', async () => {
  const caller = new AbortController();
  let arrived = 0;
  const port = await start(() => void (arrived += 1));
  const outcome = fetchOf()(`http://127.0.0.1:${port}/`, { ...BOUNDS, signal: caller.signal });
  await eventually(() => expect(arrived).toBe(1));
  caller.abort();
  expect((await outcome).kind).toBe('timeout');
  expect((await fetchOf()(`http://127.0.0.1:${port}/`, { ...BOUNDS, signal: caller.signal })).kind).toBe('timeout');
  expect(arrived).toBe(1);
});

it('guardedFetch connects to no private address, whether by IP, by name or after a DNS change', async () => {
  let connections = 0;
  const port = await start((_request, response) => void response.end());
  servers[0]?.on('connection', () => (connections += 1));
  const answers = [['93.184.216.34', '127.0.0.1'], ['127.0.0.1'], ['10.0.0.1']];
  const lookup = () => Promise.resolve(answers.shift() ?? []);
  for (const host of ['127.0.0.1', '[::1]', '0x7f.1', 'localhost', 'a.example', 'b.example', 'c.example']) {
    const fetching = fetchOf(host.endsWith('example') ? { lookup } : {}, false)(
      `http://${host}:${port}/s3cret`,
      BOUNDS,
    );
    const outcome = await fetching;
    expect([host, outcome.kind]).toEqual([host, 'refused']);
    expect(outcome.kind !== 'answer' && outcome.reason).not.toContain('s3cret');
  }
  expect(connections).toBe(0);
});

it('guardedFetch looks up a name once and connects to the address from that lookup', async () => {
  let asked = 0;
  const port = await start((_request, response) => void response.end());
  const lookup = () => Promise.resolve(asked++ === 0 ? ['127.0.0.1'] : ['127.0.0.99']);
  expect((await fetchOf({ lookup })(`http://rebind.example:${port}/`, BOUNDS)).kind).toBe('answer');
  expect(asked).toBe(1);
});

it('guardedFetch verifies the certificate against the host name', async () => {
  const port = await start((_request, response) => void response.end('ok'), true);
  const untrusted = await fetchOf()(`https://localhost:${port}/s3cret`, BOUNDS);
  expect(untrusted).toMatchObject({
    kind: 'failed',
    reason: expect.stringMatching(/^localhost could not be reached \(/),
  });
  const { cert } = testCertificate();
  expect((await fetchOf({ ca: cert })(`https://localhost:${port}/`, BOUNDS)).kind).toBe('answer');
  const other = fetchOf({ ca: cert, lookup: here })(`https://other.example:${port}/`, BOUNDS);
  expect(await other).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
  });
});

it('guardedFetch fails for a closed port and for a server that only sends status 103', async () => {
  const port = await start((_request, response) => {
    const again = (): void => {
      if (response.destroyed) return;
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      setImmediate(again);
    };
    again();
  });
  expect((await fetchOf()(`http://127.0.0.1:${port}/`, BOUNDS)).kind).toBe('failed');
  expect(await fetchOf()('http://127.0.0.1:1/', BOUNDS)).toEqual({
    kind: 'failed',
    reason: '127.0.0.1 could not be reached (ECONNREFUSED)',
  });
});

it('passes the body of a 200 in pieces, as fast as the caller takes the pieces', async () => {
  const port = await start((_request, response) => void response.end(Buffer.alloc(1_000_000, 'x')));
  let bytes = 0;
  let busy = 0;
  const onPiece = async (piece: Buffer): Promise<void> => {
    busy += 1;
    expect(busy).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    bytes += piece.length;
    busy -= 1;
  };
  const outcome = await fetchOf()(`http://127.0.0.1:${port}/`, { ...BOUNDS, maxBytes: 1_000_000, onPiece });
  expect(outcome).toMatchObject({ kind: 'answer', status: 200, body: Buffer.alloc(0) });
  expect(bytes).toBe(1_000_000);
});

it('bodies in pieces: another status is no piece; a limit, a broken connection and an error of the caller end the request', async () => {
  const pieces: Buffer[] = [];
  const onPiece = async (piece: Buffer): Promise<void> => void pieces.push(piece);
  const missing = await start((_request, response) => void response.writeHead(404).end('no'));
  expect(await fetchOf()(`http://127.0.0.1:${missing}/`, { ...BOUNDS, onPiece })).toMatchObject({ status: 404 });
  expect(pieces).toEqual([]);
  const long = await start((_request, response) => void response.end(Buffer.alloc(1025)));
  expect(await fetchOf()(`http://127.0.0.1:${long}/`, { ...BOUNDS, onPiece })).toMatchObject({ kind: 'too_long' });
  const broken = await start((request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('part');
    setTimeout(() => request.socket.destroy(), 20);
  });
  expect(await fetchOf()(`http://127.0.0.1:${broken}/`, { ...BOUNDS, onPiece })).toMatchObject({ kind: 'failed' });
  const refusing = () => Promise.reject(new Error('the disk is full'));
  const fine = await start((_request, response) => void response.end('fine'));
  expect(await fetchOf()(`http://127.0.0.1:${fine}/`, { ...BOUNDS, onPiece: refusing })).toMatchObject({
    kind: 'failed',
  });
});
