// The connection gate with real sockets: accepted, refused and evicted connections, and the log lines about them.
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { Admission, type ConnectionKind } from '@tunnel/rules/admission';
import { createLogger } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { HttpListener, refusedAsJson } from '../http/http-listener.ts';
import { type AcceptedConnection, ConnectionGate } from './connection-gate.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const openGate = (limits: Partial<Admission['limits']> = {}, perNetwork = 100, trustedProxies: string[] = []) => {
  const lines: Record<string, unknown>[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => {
    const text = chunk.toString().trimEnd();
    for (const line of text.split('\n')) lines.push(JSON.parse(line) as Record<string, unknown>);
  });
  const clock = new FakeClock();
  const logger = createLogger({ format: 'json', stream });
  const admission = new Admission({ limits: { visitors: 100, control: 100, api: 100, ...limits }, perNetwork });
  const gate = new ConnectionGate({ admission, trustedProxies, clock, logger });
  return { gate, admission, clock, lines, logger };
};

const listen = async (gate: ConnectionGate, kind: ConnectionKind) => {
  const accepted: (AcceptedConnection | null)[] = [];
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    accepted.push(gate.accept(kind, socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const visit = async (localAddress = '127.0.0.1'): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    socket.on('error', () => {});
    cleanups.push(() => socket.destroy());
    await once(socket, 'connect');
    return socket.resume();
  };
  /** Returns the error code of a refused connection. The reset may arrive before the connection is established. */
  const fate = (): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port });
      cleanups.push(() => socket.destroy());
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    });
  return { accepted, visit, fate };
};

describe('an accepted connection', () => {
  it('counts until it closes, whichever side closes it', async () => {
    const { gate, admission } = openGate();
    const { accepted, visit } = await listen(gate, 'tcp');
    const [one] = [await visit(), await visit()];
    await eventually(() => expect(admission.used.visitors).toBe(2));
    one.destroy();
    accepted[1]?.socket.destroy();
    await eventually(() => expect([admission.used.visitors, admission.ofNetwork('127.0.0.1')]).toEqual([0, 0]));
  });

  it('over a limit is reset on tcp, and gets an HTTP refusal for 3 s on http', async () => {
    const { gate, clock, admission } = openGate({}, 1);
    const tcp = await listen(gate, 'tcp');
    await tcp.visit();
    await eventually(() => expect(admission.used.visitors).toBe(1));
    expect(await tcp.fate()).toBe('ECONNRESET');
    const http = await listen(gate, 'http');
    const told = await http.visit();
    await eventually(() => expect(http.accepted[0]?.refusal?.code).toBe('CONNECTIONS_PER_ADDRESS'));
    expect(admission.used.visitors).toBe(1);
    const closed = once(told, 'close');
    await clock.advance(3000);
    await closed;
    expect(clock.pendingTimers).toBe(0);
  });

  it("of a trusted proxy does not count toward the proxy's address on http, but does on tcp", async () => {
    const { gate, admission } = openGate({}, 1, ['127.0.0.0/8']);
    const http = await listen(gate, 'http');
    await http.visit();
    await http.visit();
    await eventually(() => expect(admission.used.visitors).toBe(2));
    expect([http.accepted.map((one) => one?.refusal), admission.ofNetwork('127.0.0.1')]).toEqual([[null, null], 0]);
    const tcp = await listen(gate, 'tcp');
    await tcp.visit();
    await eventually(() => expect(admission.ofNetwork('127.0.0.1')).toBe(1));
  });

  it('that is evicted is closed, and its place is free at once', async () => {
    const { gate, admission, lines, logger } = openGate({ visitors: 3 });
    const { visit } = await listen(gate, 'http');
    const oldest = await visit('127.0.0.2');
    await visit('127.0.0.2');
    await visit('127.0.0.2');
    await eventually(() => expect(admission.used.visitors).toBe(3));
    const closed = once(oldest, 'close');
    const newcomer = await visit('127.0.0.1');
    await closed;
    expect([newcomer.destroyed, admission.used.visitors, admission.refusals.get('shed')]).toEqual([false, 3, 1]);
    await logger.flush();
    expect(lines.filter(({ reason }) => reason === 'shed')).toHaveLength(1);
  });
});

describe('a connection on a visitor port that becomes a client connection', () => {
  it("moves its place from the visitors' to the clients' share, and frees it when it closes", async () => {
    const { gate, admission } = openGate();
    const { accepted, visit } = await listen(gate, 'http');
    const socket = await visit();
    await eventually(() => expect(admission.used.visitors).toBe(1));
    const connection = accepted[0] as AcceptedConnection;
    expect(gate.find(connection.socket)).toBeUndefined();
    expect(gate.becomesControl(connection)).toBe(true);
    expect([admission.used.visitors, admission.used.control, admission.ofNetwork('127.0.0.1')]).toEqual([0, 1, 0]);
    expect([gate.find(connection.socket), connection.refusal]).toEqual([connection, null]);
    expect(gate.identify(connection, 'alice', 'carrier')).toBeNull();
    socket.destroy();
    await eventually(() => expect([admission.used.control, admission.ofAccount('alice')]).toEqual([0, 0]));
    expect([gate.find(connection.socket), admission.tickets.size]).toEqual([undefined, 0]);
    expect(gate.becomesControl(connection)).toBe(false);
  });

  it("is accepted even if the visitors' share is full", async () => {
    const { gate, admission, clock } = openGate({ visitors: 1 });
    const { accepted, visit } = await listen(gate, 'https');
    await visit();
    await eventually(() => expect(accepted).toHaveLength(1));
    accepted[0]?.requestBegins(0);
    const socket = await visit();
    await eventually(() => expect(accepted[1]?.refusal?.code).toBe('CONNECTIONS_FULL'));
    const connection = accepted[1] as AcceptedConnection;
    expect([gate.becomesControl(connection), connection.refusal]).toEqual([true, null]);
    await clock.advance(10_000);
    expect([socket.destroyed, connection.socket.destroyed, admission.used]).toEqual([
      false,
      false,
      { visitors: 1, control: 1, api: 0 },
    ]);
  });

  it("has the limits of clients, gets its refusal for 3 s, and takes no visitor's place meanwhile", async () => {
    const { gate, admission, clock } = openGate({ control: 1000 });
    const { accepted, visit } = await listen(gate, 'http');
    for (let n = 0; n < 256; n += 1) admission.enter('control', '127.0.0.1', 0);
    const socket = await visit();
    await eventually(() => expect(accepted).toHaveLength(1));
    const connection = accepted[0] as AcceptedConnection;
    expect([gate.becomesControl(connection), connection.refusal?.code]).toEqual([true, 'CONTROL_WAITING_LIMIT']);
    expect(admission.used.visitors).toBe(0);
    const closed = once(socket, 'close');
    await clock.advance(3000);
    await closed;
    expect(clock.pendingTimers).toBe(0);
  });
});

it('the log has one line per second and reason with a count, and one line when a share is nearly full', async () => {
  const { gate, admission, clock, lines, logger } = openGate({ visitors: 10 }, 100);
  const { visit, fate } = await listen(gate, 'tcp');
  for (let n = 0; n < 10; n += 1) await visit();
  await eventually(() => expect(admission.used.visitors).toBe(10));
  for (const { held } of admission.tickets) (held as AcceptedConnection).requestBegins(0);
  for (let n = 0; n < 20; n += 1) expect(await fate()).toBe('ECONNRESET');
  await clock.advance(1000);
  await fate();
  await eventually(() => expect(admission.refusals.get('visitors-full')).toBe(21));
  await logger.flush();
  const refused = lines.filter(({ reason }) => reason === 'visitors-full');
  expect(refused.map(({ suppressed, code }) => [suppressed, code])).toEqual([
    [undefined, 'CONNECTIONS_FULL'],
    [19, 'CONNECTIONS_FULL'],
  ]);
  expect(
    lines.filter(({ share }) => share === 'visitors').map(({ connections, limit }) => [connections, limit]),
  ).toEqual([[8, 10]]);
});

it('failed accepts log at most one line per second', async () => {
  const { gate, lines, logger } = openGate();
  for (let n = 0; n < 5; n += 1) gate.onAcceptError(new Error('accept EMFILE'));
  await logger.flush();
  expect(lines).toHaveLength(1);
});

describe('an HTTP listener behind the gate', () => {
  const start = async (api: number) => {
    const opened = openGate({ api });
    const listener = new HttpListener({
      on: { host: '127.0.0.1', port: 0, key: 'port' },
      gate: opened.gate,
      kind: 'rest',
      onRequest: (request, response) => {
        if (request.url !== '/hold') response.end('here');
      },
      bounds: { headTimeoutMs: 10_000, requestTimeoutMs: 10_000 },
      refused: refusedAsJson(() => 'req_1'),
    });
    await listener.start();
    cleanups.push(() => listener.stop());
    const get = (
      path: string,
      localAddress = '127.0.0.1',
    ): Promise<{ status: number; retryAfter: string; body: string }> =>
      new Promise((resolve, reject) => {
        const { port } = listener.address;
        const request = httpRequest({ host: '127.0.0.1', port, path, localAddress, agent: false }, (response) => {
          let body = '';
          response.on('data', (chunk: Buffer) => {
            body += String(chunk);
          });
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] ?? '', body }),
          );
        });
        cleanups.push(() => request.destroy());
        request.on('error', reject);
        request.end();
      });
    return { ...opened, get };
  };

  it('answers 503 with Retry-After to a network that holds all connections, and serves another network', async () => {
    const { admission, get } = await start(2);
    for (let n = 0; n < 2; n += 1) get('/hold').catch(() => {});
    await eventually(() => expect([...admission.tickets].filter(({ held }) => held?.isIdle === false)).toHaveLength(2));
    const refused = await get('/');
    expect([refused.status, refused.retryAfter]).toEqual([503, '1']);
    expect(JSON.parse(refused.body)).toMatchObject({ code: 'CONNECTIONS_FULL' });
    // Another network holds no connections yet, so it is served.
    expect(await get('/', '127.0.0.2')).toMatchObject({ status: 200, body: 'here' });
  });
});
