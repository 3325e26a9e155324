import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { ownerKey } from '@tunnel/rules/tunnels';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openGate } from '../ingress/gate.fixture.ts';
import { AuthFailures } from './authentication.ts';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { SPEED_TIMEOUT_MS } from './limits.ts';
import { SPEED_MAX_BYTES, SPEED_WINDOW_MS, SpeedTests } from './speed-tests.ts';

const ALICE = ownerKey({ kind: 'account', accountId: 'alice' });

let fixture: ControlFixture;
let clock: FakeClock;
const sockets: Socket[] = [];
beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, failuresPerMinute: 3 });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await fixture.stop();
});

const ask = (query: string, key: string | null = 'alice', init: RequestInit = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${fixture.port}/_speed${query}`, {
    ...init,
    headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...init.headers },
  });

/** Returns the status only, after reading the body to its end. */
const statusOf = async (query: string, key?: string | null, init?: RequestInit): Promise<number> => {
  const response = await ask(query, key, init);
  await response.arrayBuffer();
  return response.status;
};

const post = (bytes: number): RequestInit => ({ method: 'POST', body: new Uint8Array(bytes) });

/** Sends a raw request. The response is not read unless the test does so. */
const dial = async (request: string): Promise<Socket> => {
  const socket = connect(fixture.port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  await once(socket, 'connect');
  socket.write(request);
  return socket;
};

describe('/_speed', () => {
  it('sends the requested number of bytes, and counts received bytes', async () => {
    for (const bytes of [0, 1, 65_536, 1_000_000]) {
      const response = await ask(`?bytes=${bytes}`);
      expect([response.status, response.headers.get('content-length')]).toEqual([200, String(bytes)]);
      expect((await response.arrayBuffer()).byteLength).toBe(bytes);
      const answer = await ask('', 'alice', post(bytes));
      expect([answer.status, await answer.json()]).toEqual([200, { bytes }]);
    }
  });

  it('accepts a body without content-length', async () => {
    const body = new ReadableStream({
      pull: (controller) => {
        controller.enqueue(new Uint8Array(70_000));
        controller.close();
      },
    });
    const answer = await ask('', 'op', { method: 'POST', body, duplex: 'half' } as RequestInit);
    expect([answer.status, await answer.json()]).toEqual([200, { bytes: 70_000 }]);
  });

  it('needs a key, and counts wrong keys', async () => {
    expect(await statusOf('?bytes=1', null)).toBe(401);
    expect((await ask('?bytes=1', 'mallory')).headers.get('www-authenticate')).toBe('Bearer');
    expect(await statusOf('?bytes=1', 'away')).toBe(503);
    for (let n = 0; n < 2; n += 1) expect(await statusOf('?bytes=1', 'mallory')).toBe(401);
    const blocked = await ask('?bytes=1', 'alice');
    expect([blocked.status, Number(blocked.headers.get('retry-after')) > 0]).toEqual([429, true]);
  });

  it.each(['', '?bytes=', '?bytes=-1', '?bytes=1.5', '?bytes=1e3', '?bytes=0x10', '?bytes=1&bytes=2', '?byte=1'])(
    'rejects the query %j with 400',
    async (query) => expect(await statusOf(query)).toBe(400),
  );

  it('rejects more than 16 MiB per request in either direction, before the transfer', async () => {
    expect(await statusOf(`?bytes=${SPEED_MAX_BYTES + 1}`)).toBe(400);
    const socket = await dial(
      `POST /_speed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Length: ${SPEED_MAX_BYTES + 1}\r\n\r\n`,
    );
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 400 /);
    await once(socket.resume(), 'close');
  });

  it('reports the error to a client that is still sending, with or without content-length', async () => {
    expect(await statusOf('', null, post(SPEED_MAX_BYTES))).toBe(401);
    const endless = await dial(
      'POST /_speed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const answered = once(endless, 'data');
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x10000), Buffer.from('\r\n')]);
    for (let n = 0; n <= SPEED_MAX_BYTES / 0x10000; n += 1) endless.write(chunk);
    expect(String((await answered)[0])).toMatch(/^HTTP\/1\.1 400 /);
  });

  it.each([
    ['a missing key', 'Content-Length: 10', 401],
    ['an unsupported Expect header', 'Authorization: Bearer alice\r\nContent-Length: 10\r\nExpect: 200-ok', 200],
  ])(
    'closes the connection after %s, so that a proxy cannot reuse it for another visitor',
    async (_what, headers, status) => {
      const socket = await dial(`POST /_speed HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n12345`);
      let answer = '';
      socket.on('data', (chunk: Buffer) => {
        answer += chunk.toString('latin1');
      });
      // A refusal is complete before the body has arrived.
      if (status === 401) await eventually(() => expect(answer).toMatch(/\r\n\r\n.+\n$/));
      socket.write('67890');
      await once(socket, 'close');
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer.match(/connection: .*/gi)).toEqual(['connection: close']);
    },
  );

  it.each(['PUT', 'DELETE', 'HEAD'])('rejects the method %s', async (method) => {
    const response = await ask('?bytes=1', 'alice', { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, POST']);
  });

  it('allows an account 64 MiB per minute, across its keys and both directions', async () => {
    for (const key of ['alice', 'alice-2']) {
      expect(await statusOf(`?bytes=${SPEED_MAX_BYTES}`, key)).toBe(200);
      expect(await statusOf('', key, post(SPEED_MAX_BYTES))).toBe(200);
    }
    const over = await ask('?bytes=1', 'alice-2');
    const words = await over.text();
    expect([over.status, Number(over.headers.get('retry-after'))]).toEqual([429, SPEED_WINDOW_MS / 1000 + 1]);
    expect(words).toContain('67108864 bytes per minute');
    expect(await statusOf('', 'alice', post(1))).toBe(429);
    expect([await statusOf('?bytes=0'), await statusOf('?bytes=1', 'bob')]).toEqual([200, 200]);
    await clock.advance(SPEED_WINDOW_MS + 1000);
    expect(await statusOf('?bytes=1')).toBe(200);
  });
});

it('a speed test of a client that does not read holds its place until the timeout and is then closed', async () => {
  const socket = await dial(
    `GET /_speed?bytes=${SPEED_MAX_BYTES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n\r\n`,
  );
  socket.pause();
  await eventually(() => expect(fixture.gate.admission.ofAccount(ALICE)).toBe(1));
  const [held] = [...fixture.gate.admission.tickets].map((ticket) => ticket.held);
  expect(held?.describe()).toEqual({ phase: 'measuring', waitsFor: 'the path' });
  await clock.advance(SPEED_TIMEOUT_MS);
  await eventually(() => expect(fixture.gate.admission.used.control).toBe(0));
  expect(fixture.gate.admission.ofAccount(ALICE)).toBe(0);
});

it('a speed test with an incomplete body is closed after the timeout', async () => {
  await dial('POST /_speed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Length: 10\r\n\r\n12345');
  await eventually(() => expect(fixture.gate.admission.ofAccount(ALICE)).toBe(1));
  await clock.advance(SPEED_TIMEOUT_MS);
  await eventually(() => expect(fixture.gate.admission.used.control).toBe(0));
});

it('an internal error in a speed test closes the connection and is reported', async () => {
  const reported: unknown[] = [];
  const gate = openGate();
  const tests = new SpeedTests({
    backend: { verifyKey: () => Promise.reject(new Error('raised')) },
    failures: new AuthFailures({ clock, perMinute: 3 }),
    gate,
    clock,
    report: (_error, where) => reported.push(where),
  });
  const server = createServer((request, response) => {
    const accepted = gate.find(request.socket);
    if (accepted !== undefined) tests.serve(request, response, accepted, '127.0.0.1');
  });
  server.on('connection', (socket) => gate.accept('control', socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await expect(fetch(`http://127.0.0.1:${port}/_speed?bytes=1`)).rejects.toThrow();
  expect([reported, gate.admission.used.control]).toEqual([['speed.request'], 0]);
  server.close();
});
