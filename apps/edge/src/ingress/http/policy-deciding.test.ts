// Requests with rules that must wait: the order is kept, requests of visitors that leave are dropped, held bodies are freed, and a drain
// waits for the answer.

import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import * as net from 'node:net';
import type { MuxStream } from '@tunnel/mux';
import type { Rule } from '@tunnel/policy';
import { eventually, hashOf } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { POLICY_HELD_BODY_MS } from '../../policy/held-bodies.ts';
import { basic, basicAuth, SlowPasswords } from '../../policy/policy.fixture.ts';
import { talk } from './http.fixture.ts';
import { visitHttp2 } from './https.fixture.ts';
import { askHttp2, type PolicyStand, startPolicyStand, VERSIONS } from './policy-stand.fixture.ts';
import { POLICY_DECISION_TIMEOUT_MS } from './proxied-request.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const SECRET = 'whsec of the sender';
const github: Rule = { verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: 1024 * 1024 } };
const signatureOf = (body: string): string => `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;

/** A signature header that may be valid, because the edge holds a body only for such a signature. */
const SIGNED = `X-Hub-Signature-256: ${signatureOf('whatever')}`;

const start = async (
  rules: readonly Rule[],
  more: Parameters<typeof startPolicyStand>[1] = {},
): Promise<PolicyStand & { readonly passwords: SlowPasswords }> => {
  const passwords = new SlowPasswords();
  const stand = await startPolicyStand(rules, { perform: passwords.perform, ...more });
  cleanups.push(() => stand.stop());
  return { ...stand, passwords };
};

const get = (path: string, ...fields: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: web.localhost', ...fields, '', ''].join('\r\n');
const AUTHORIZED = `Authorization: ${basic('me', 'right')}`;
/** Paths below /slow need a password, other paths do not. */
const slowPaths: Rule = { ...basicAuth, match: { path: ['/slow/**'] } };

const dial = (stand: PolicyStand): net.Socket => {
  const socket = net.connect({ port: stand.http.port, host: '127.0.0.1' });
  socket.on('error', () => {});
  cleanups.push(() => socket.destroy());
  return socket;
};

const asked = async (
  { passwords }: { readonly passwords: SlowPasswords },
  count = 1,
): Promise<SlowPasswords['asked']> => {
  await eventually(() => expect(passwords.asked).toHaveLength(count));
  return passwords.asked;
};

it('HTTP/1.1: a slow decision in a pipeline keeps the order, and later requests wait', async () => {
  const stand = await start([slowPaths]);
  const requests = get('/one') + get('/slow/two', AUTHORIZED) + get('/three') + get('/four', 'Connection: close');
  const talking = talk(stand.http.port, requests);
  const [slow] = await asked(stand);
  await eventually(() => expect(stand.service.asked.map(({ url }) => url)).toEqual(['/one']));
  slow?.answer(true);
  expect((await talking).match(/HTTP\/1\.1 200/g)).toHaveLength(4);
  expect(stand.service.asked.map(({ url }) => url)).toEqual(['/one', '/slow/two', '/three', '/four']);
});

it('HTTP/1.1: a slow rejection in a pipeline is answered in its turn, and the next request is served', async () => {
  const stand = await start([slowPaths]);
  const talking = talk(stand.http.port, get('/slow/one', AUTHORIZED) + get('/two', 'Connection: close'));
  const [slow] = await asked(stand);
  slow?.answer(false);
  expect((await talking).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200']);
  expect(stand.service.asked.map(({ url }) => url)).toEqual(['/two']);
});

it('HTTP/2: a slow decision delays only its own stream', async () => {
  const stand = await start([slowPaths]);
  const session = visitHttp2(stand.https);
  cleanups.push(() => session.destroy());
  const slow = askHttp2(session, '/slow', { headers: { authorization: basic('me', 'right') } });
  const [pending] = await asked(stand);
  expect((await askHttp2(session, '/fast')).status).toBe(200);
  pending?.answer(true);
  expect((await slow).status).toBe(200);
});

it('HTTP/1.1: a visitor that leaves during a decision cancels the pending check and leaves nothing behind', async () => {
  const stand = await start([basicAuth]);
  const socket = dial(stand);
  socket.write(get('/', AUTHORIZED));
  const [pending] = await asked(stand);
  expect(pending?.signal.aborted).toBe(false);
  socket.destroy();
  await eventually(() => expect(pending?.signal.aborted).toBe(true));
  pending?.answer(true);
  await eventually(() => expect(stand.http.ingress.connections).toBe(0));
  expect([stand.service.asked.length, stand.http.tunnel.counters.requests, stand.http.dials]).toEqual([0, 0, 0]);
});

it('HTTP/2: a stream that is reset during a decision cancels only its own pending check', async () => {
  const stand = await start([basicAuth]);
  const session = visitHttp2(stand.https);
  cleanups.push(() => session.destroy());
  const headers = { ':path': '/', authorization: basic('me', 'right') };
  const stream = session.request(headers);
  stream.on('error', () => {});
  const other = askHttp2(session, '/other', { headers: { authorization: basic('me', 'right') } });
  const [first, second] = await asked(stand, 2);
  stream.close(8);
  await eventually(() => expect(first?.signal.aborted).toBe(true));
  expect(second?.signal.aborted).toBe(false);
  second?.answer(true);
  expect((await other).status).toBe(200);
  expect(stand.service.asked.map(({ url }) => url)).toEqual(['/other']);
});

it('a drain waits for a pending decision, and the connection closes after the response', async () => {
  const stand = await start([basicAuth]);
  const talking = talk(stand.http.port, get('/', AUTHORIZED));
  const [pending] = await asked(stand);
  stand.http.ingress.drain();
  pending?.answer(true);
  expect(await talking).toMatch(/^HTTP\/1\.1 200 [^]*Connection: close/i);
  await stand.http.ingress.whenIdle();
});

it.each(VERSIONS)(
  '%s: a request decided after the client left a draining edge gets 503 with Retry-After, not 502',
  async (version) => {
    const onStream = (stream: MuxStream): void => stream.refuse({ code: 'shutting-down', text: 'the client leaves' });
    const stand = await start([basicAuth], { onStream });
    const visiting = stand.visit(version, '/', { headers: { authorization: basic('me', 'right') } });
    const [pending] = await asked(stand);
    stand.http.ingress.drain();
    pending?.answer(true);
    const { status, headers } = await visiting;
    expect([status, headers['retry-after'], headers['x-tunnel-error']]).toEqual([503, '1', 'EDGE_SHUTTING_DOWN']);
  },
);

it('rules that exceed their time limit cause 503 and cancel the pending check', async () => {
  const stand = await start([basicAuth]);
  const talking = talk(stand.http.port, get('/', AUTHORIZED, 'Connection: close'));
  const [pending] = await asked(stand);
  await stand.http.clock.advance(POLICY_DECISION_TIMEOUT_MS + 1000);
  expect(await talking).toMatch(/^HTTP\/1\.1 503 /);
  expect(pending?.signal.aborted).toBe(true);
  expect(stand.service.asked).toEqual([]);
});

it('no byte of an upload is lost while a password is checked', async () => {
  const stand = await start([basicAuth]);
  const body = 'x'.repeat(300_000);
  const visiting = stand.visit('HTTP/1.1', '/', {
    method: 'POST',
    body,
    headers: { authorization: basic('me', 'right') },
  });
  const [pending] = await asked(stand);
  pending?.answer(true);
  expect((await visiting).status).toBe(200);
  expect(stand.service.asked[0]?.bodyHash).toBe(hashOf(Buffer.from(body)));
});

// ---- held bodies ----

it('HTTP/1.1: the edge sends 100 (Continue) for a held body, and the service gets no Expect', async () => {
  const expects: (string | undefined)[] = [];
  const stand = await start([github], {
    listener: (request, response) => {
      expects.push(request.headers.expect);
      response.end('served');
    },
  });
  const body = '{"a":1}';
  const socket = dial(stand);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  const head = ['POST / HTTP/1.1', 'Host: web.localhost', `Content-Length: ${body.length}`, 'Expect: 100-continue'];
  socket.write([...head, `X-Hub-Signature-256: ${signatureOf(body)}`, 'Connection: close', '', ''].join('\r\n'));
  await eventually(() => expect(text).toBe('HTTP/1.1 100 Continue\r\n\r\n'));
  expect(stand.http.dials).toBe(0);
  socket.write(body);
  await eventually(() => expect(text).toContain('served'));
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200']);
  expect(expects).toEqual([undefined]);
});

it('HTTP/2: the edge sends 100 for a held body before it dials, and the service gets the whole body', async () => {
  const stand = await start([github]);
  const session = visitHttp2(stand.https);
  cleanups.push(() => session.destroy());
  const body = '{"b":2}';
  const stream = session.request({
    ':method': 'POST',
    ':path': '/',
    'content-length': String(body.length),
    expect: '100-continue',
    'x-hub-signature-256': signatureOf(body),
  });
  await once(stream, 'continue');
  expect(stand.http.dials).toBe(0);
  stream.end(body);
  const [head] = (await once(stream, 'response')) as [Record<string, unknown>];
  expect([head[':status'], stand.service.asked[0]?.bodyHash]).toEqual([200, hashOf(Buffer.from(body))]);
  stream.resume();
});

it('HTTP/1.1: a held body and a pipelined request stay separate, in pieces of any size', async () => {
  const body = 'hello webhook';
  const post = ['POST /hook HTTP/1.1', 'Host: web.localhost', 'Transfer-Encoding: chunked'];
  const chunks = `5\r\n${body.slice(0, 5)}\r\n8\r\n${body.slice(5)}\r\n0\r\n\r\n`;
  const whole = `${[...post, `X-Hub-Signature-256: ${signatureOf(body)}`, '', ''].join('\r\n')}${chunks}`;
  const next = get('/next', `X-Hub-Signature-256: ${signatureOf('')}`, 'Connection: close');
  for (const size of [1, 7, 4096]) {
    const stand = await start([github]);
    const socket = dial(stand);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    const bytes = whole + next;
    for (let at = 0; at < bytes.length; at += size) {
      socket.write(bytes.slice(at, at + size));
      if (size < 100 && at % (size * 16) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually(() => expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(2));
    expect(stand.service.asked.map(({ url, bodyHash }) => [url, bodyHash])).toEqual([
      ['/hook', hashOf(Buffer.from(body))],
      ['/next', hashOf(Buffer.alloc(0))],
    ]);
  }
});

it('HTTP/1.1: a visitor that leaves or stalls frees its held body, and a stalled visitor gets 408', async () => {
  const stand = await start([github]);
  const head = `POST / HTTP/1.1\r\nHost: web.localhost\r\n${SIGNED}\r\nContent-Length: 1000\r\n\r\n`;
  const leaving = dial(stand);
  leaving.write(`${head}${'x'.repeat(400)}`);
  await eventually(() => expect(stand.heldBodies.bytes).toBe(400));
  leaving.destroy();
  await eventually(() => expect(stand.heldBodies.bytes).toBe(0));
  const stalled = dial(stand);
  const closed = new Promise((resolve) => stalled.on('close', resolve));
  let text = '';
  stalled.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  stalled.write(`${head}${'x'.repeat(500)}`);
  await eventually(() => expect(stand.heldBodies.bytes).toBe(500));
  await stand.http.clock.advance(POLICY_HELD_BODY_MS + 1000);
  await closed;
  expect(text).toMatch(/^HTTP\/1\.1 408 [^]*Connection: close/i);
  expect([stand.heldBodies.bytes, stand.http.dials]).toEqual([0, 0]);
  await eventually(() => expect(stand.http.ingress.connections).toBe(0));
});

it('HTTP/2: a stream that is reset or stalls frees its held body, and a stalled stream gets 408', async () => {
  const stand = await start([github]);
  const session = visitHttp2(stand.https);
  cleanups.push(() => session.destroy());
  const open = (): ReturnType<typeof session.request> => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/',
      'content-length': '1000',
      'x-hub-signature-256': signatureOf('whatever'),
    });
    stream.on('error', () => {});
    stream.write('x'.repeat(400));
    return stream;
  };
  const leaving = open();
  await eventually(() => expect(stand.heldBodies.bytes).toBe(400));
  leaving.close(8);
  await eventually(() => expect(stand.heldBodies.bytes).toBe(0));
  const stalled = open();
  let status = 0;
  stalled.on('response', (headers) => (status = Number(headers[':status']))).resume();
  await eventually(() => expect(stand.heldBodies.bytes).toBe(400));
  await stand.http.clock.advance(POLICY_HELD_BODY_MS + 1000);
  await eventually(() => expect([stalled.closed, status]).toEqual([true, 408]));
  expect([stand.heldBodies.bytes, stand.http.dials]).toEqual([0, 0]);
});

it('HTTP/1.1: a malformed held body gets 400 and is freed', async () => {
  const stand = await start([github]);
  const head = `POST / HTTP/1.1\r\nHost: web.localhost\r\n${SIGNED}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  expect(await talk(stand.http.port, `${head}5\r\nhello\r\nzz\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
  expect([stand.heldBodies.bytes, stand.http.dials]).toEqual([0, 0]);
});

it('HTTP/1.1: a body that exceeds max_body after the response has begun cuts the connection off', async () => {
  const stand = await start([{ max_body: 1000 }], {
    onStream: (stream) => {
      stream.accept();
      stream.read({
        onData: () => true,
        onDrain: () => {},
        onEnd: () => {},
        onReset: () => {},
        abandon: () => {},
      });
      const early = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nearly');
      stream.write(early, 0, early.length, false);
    },
  });
  const socket = dial(stand);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write('POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
  await eventually(() => expect(text).toContain('early'));
  socket.write(`${(2000).toString(16)}\r\n${'x'.repeat(2000)}\r\n`);
  await eventually(async () => {
    await stand.http.clock.advance(1000);
    expect(socket.destroyed).toBe(true);
  });
  await closed;
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
});

/** Creates a service that sends the answer at once and reads no data. */
const deafService =
  (answer: string) =>
  (stream: MuxStream): void => {
    stream.accept();
    stream.read({ onData: () => false, onDrain: () => {}, onEnd: () => {}, onReset: () => {}, abandon: () => {} });
    const bytes = Buffer.from(answer);
    stream.write(bytes, 0, bytes.length, false);
  };

const postHeld = (body: string, ...fields: string[]): string =>
  [
    ...['POST / HTTP/1.1', 'Host: web.localhost', `Content-Length: ${body.length}`, ...fields],
    ...[`X-Hub-Signature-256: ${signatureOf(body)}`, '', body],
  ].join('\r\n');

it('a held body is freed after a while if the service answers without reading it', async () => {
  const onStream = deafService('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nearly');
  const stand = await start([github], { onStream });
  const body = 'x'.repeat(1024 * 1024);
  const socket = dial(stand);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.write(postHeld(body));
  await eventually(() => expect(text).toContain('early'));
  expect(stand.heldBodies.bytes).toBe(body.length);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  await stand.http.clock.advance(EDGE_LIMITS.HTTP_STALLED_BODY_MS + 5000);
  await closed;
  await eventually(() => expect([stand.heldBodies.bytes, stand.http.ingress.connections]).toEqual([0, 0]));
});

it('an upgraded connection frees the held body of its request', async () => {
  const onStream = deafService('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  const stand = await start([github], { onStream });
  const socket = dial(stand);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.write(postHeld('x'.repeat(1024 * 1024), 'Connection: Upgrade', 'Upgrade: x'));
  await eventually(() => expect(text).toMatch(/^HTTP\/1\.1 101 /));
  expect([stand.heldBodies.bytes, stand.http.ingress.connections]).toEqual([0, 1]);
});

it('two rules verify the same body, the service gets the whole body, and it is freed', async () => {
  const stand = await start([
    github,
    {
      verify_webhook: {
        provider: 'hmac',
        secrets: [SECRET],
        max_bytes: 1024 * 1024,
        header: 'x-sign',
        algorithm: 'sha256',
        encoding: 'hex',
        prefix: '',
      },
    },
  ]);
  const body = 'twice signed';
  const headers = { 'x-hub-signature-256': signatureOf(body), 'x-sign': signatureOf(body).slice('sha256='.length) };
  expect((await stand.visit('HTTP/1.1', '/', { method: 'POST', body, isChunked: true, headers })).status).toBe(200);
  expect(stand.service.asked[0]?.bodyHash).toBe(hashOf(Buffer.from(body)));
  expect(stand.heldBodies.bytes).toBe(0);
});

it.each(VERSIONS)(
  '%s: an error while rules wait causes 500, is reported, and the service gets no request',
  async (version) => {
    const reports: string[] = [];
    const stand = await start([basicAuth], {
      perform: () => Promise.reject(new Error('a mistake of ours')),
      report: (_error, where) => void reports.push(where),
    });
    const { status } = await stand.visit(version, '/', { headers: { authorization: basic('me', 'right') } });
    expect(status).toBe(500);
    expect(reports).toEqual(['policy.decide']);
    expect(stand.service.asked).toEqual([]);
  },
);
