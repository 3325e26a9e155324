import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, freePort, renewedCertificate, startTcpServer } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import type { AlertSender } from './alert-sender.ts';
import { alertOf, memoryLog, type Receiver, senderOf, startReceiver } from './alerts.fixture.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

const receiver = async (options?: Parameters<typeof startReceiver>[0]): Promise<Receiver> => {
  const made = await startReceiver(options);
  endings.push(() => made.close());
  return made;
};
const tcpServer = async (onConnection: (socket: Socket) => void) => {
  const made = await startTcpServer((socket) => {
    socket.on('end', () => socket.end());
    onConnection(socket);
  });
  endings.push(() => made.close());
  return made;
};
const sender = (rest?: Parameters<typeof senderOf>[0]): AlertSender => {
  const made = senderOf(rest);
  endings.push(() => made.close());
  return made;
};
const none = { delivered: 0, 'refused-status': 0, timeout: 0, failed: 0, 'guard-refused': 0, dropped: 0 };

describe('an alert', () => {
  it('is one POST with the body of the specification', async () => {
    const { port, received } = await receiver();
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${port}/hook?team=7`], { label: '20001', protocol: 'tcp' }));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, delivered: 1 }));
    const [request] = received;
    expect(request).toMatchObject({ method: 'POST', path: '/hook?team=7' });
    expect(request?.body).toBe(
      '{"event":"group_zero_healthy","region_id":"eu-1","protocol":"tcp","label":"20001","group_name":"Web pool",' +
        '"key_hash_short":"9f86d081","member_count":3,"at":"2026-11-15T06:00:00.000+00:00"}',
    );
    expect(request?.headers).toEqual({
      'content-type': 'application/json',
      'content-length': String(request?.body.length),
      'user-agent': 'tunnel-edge/1.2.3',
      host: `127.0.0.1:${port}`,
      connection: 'close',
    });
  });

  it('goes to the operator and to each distinct tenant URL; the log names hosts only', async () => {
    const { port, received } = await receiver();
    const log = memoryLog();
    const alerts = sender({ operatorUrl: `http://127.0.0.1:${port}/s3cret-op`, logger: log.logger });
    const base = `127.0.0.1:${port}`;
    const same = [`http://${base}/s3cret-a`, `HTTP://${base}/s3cret-a#x`, `http://127.1:${port}/./s3cret-a`];
    alerts.send(alertOf([...same, `http://${base}/s3cret-b`, `http://${base}/s3cret-op`]));
    await eventually(() => expect(alerts.totals.tenant.delivered).toBe(2));
    // The log has one line per second for each combination of account, destination and outcome.
    await eventually(() => expect(log.lines).toHaveLength(2));
    expect(received.map(({ path }) => path).sort()).toEqual(['/s3cret-a', '/s3cret-b', '/s3cret-op']);
    expect(alerts.totals).toEqual({ operator: { ...none, delivered: 1 }, tenant: { ...none, delivered: 2 } });
    expect(log.lines[0]).toEqual({
      level: 'info',
      message: 'alert delivered',
      group: 'Web pool',
      label: 'web',
      destination: 'operator',
      host: base,
      outcome: 'delivered',
      status: 204,
      duration_ms: expect.any(Number),
    });
    expect(log.text).not.toContain('s3cret');
  });

  it('carries the user name and password in the operator’s URL, and the log does not contain them', async () => {
    const { port, received } = await receiver();
    const log = memoryLog();
    const alerts = sender({ operatorUrl: `http://bob:hunter%202@127.0.0.1:${port}/`, logger: log.logger });
    alerts.send(alertOf([]));
    await eventually(() => expect(log.lines).toHaveLength(1));
    expect(received[0]?.headers.authorization).toBe(`Basic ${Buffer.from('bob:hunter 2').toString('base64')}`);
    expect(log.text).not.toMatch(/bob|hunter/);
  });

  it('reaches the operator at a private address forbidden to tenants, even if a tenant names the same URL', async () => {
    const { port, received } = await receiver();
    const url = `http://127.0.0.1:${port}/op`;
    const alerts = sender({ operatorUrl: url, allowPrivate: false });
    alerts.send(alertOf([url, `${url}/else`]));
    await eventually(() => expect(alerts.totals.operator.delivered).toBe(1));
    expect(alerts.totals.tenant).toEqual({ ...none, 'guard-refused': 1 });
    expect(received).toHaveLength(1);
  });
});

describe('the outcome of an alert', () => {
  it.each([200, 201, 299])('status %i counts as delivered', async (status) => {
    const { port } = await receiver({ answer: (_request, response) => response.writeHead(status).end('thanks') });
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${port}/`]));
    await eventually(() => expect(alerts.totals.tenant.delivered).toBe(1));
  });

  it.each([301, 307, 308])('a redirect (%i) is not followed', async (status) => {
    const target = await receiver();
    const location = `http://127.0.0.1:${target.port}/moved`;
    const { port } = await receiver({ answer: (_request, response) => response.writeHead(status, { location }).end() });
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${port}/`]));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, 'refused-status': 1 }));
    expect(target.received).toEqual([]);
  });

  it('status 500 counts as refused and is not retried', async () => {
    const clock = new FakeClock();
    const log = memoryLog();
    const { port, received } = await receiver({ answer: (_request, response) => response.writeHead(500).end() });
    const alerts = sender({ clock, logger: log.logger });
    alerts.send(alertOf([`http://127.0.0.1:${port}/`]));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, 'refused-status': 1 }));
    expect(clock.pendingTimers).toBe(0);
    expect(received).toHaveLength(1);
    expect(log.lines).toMatchObject([{ level: 'warn', outcome: 'refused-status', status: 500 }]);
  });

  it.each<[string, (socket: Socket) => void]>([
    ['never answers', () => {}],
    ['drips', (socket) => drip(socket)],
  ])('a receiver that %s is abandoned after five seconds, and the connection is closed', async (_name, behave) => {
    const clock = new FakeClock();
    const server = await tcpServer((socket) => void socket.once('data', () => behave(socket)));
    const alerts = sender({ clock });
    alerts.send(alertOf([`http://127.0.0.1:${server.port}/`]));
    await eventually(() => expect(server.openConnections).toBe(1));
    await clock.advance(4999);
    expect(alerts.totals.tenant).toEqual(none);
    await clock.advance(1);
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, timeout: 1 }));
    await eventually(() => expect(server.openConnections).toBe(0));
    expect(clock.pendingTimers).toBe(0);
  });

  it('the five seconds include the DNS lookup', async () => {
    const clock = new FakeClock();
    const alerts = sender({ clock, lookup: () => new Promise(() => {}) });
    alerts.send(alertOf(['http://slow.example/']));
    await clock.advance(5000);
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, timeout: 1 }));
  });

  it('a reset, a hang-up, a closed port and an unresolvable hostname count as failed', async () => {
    const log = memoryLog();
    const resetting = await tcpServer((socket) => socket.resetAndDestroy());
    const hangingUp = await tcpServer((socket) => void socket.once('data', () => socket.end()));
    const closedPort = await freePort();
    const lookup = () => Promise.reject(new Error('ENOTFOUND'));
    const alerts = sender({ logger: log.logger, lookup });
    const ports = [resetting.port, hangingUp.port, closedPort];
    const urls = [...ports.map((port) => `http://127.0.0.1:${port}/`), 'http://typo.example/'];
    for (const [n, url] of urls.entries()) alerts.send(alertOf([url], { account: `account ${n}` }));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, failed: 4 }));
    const reasons = log.lines.map(({ reason }) => reason);
    expect(reasons).toEqual(expect.arrayContaining(['ECONNRESET', 'ECONNREFUSED', 'typo.example does not resolve']));
  });

  it('an endless response body is not read: the head is enough', async () => {
    const server = await tcpServer((socket) => {
      socket.once('data', () =>
        flood(socket, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', '4\r\nmore\r\n'),
      );
    });
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${server.port}/`]));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, delivered: 1 }));
    await eventually(() => expect(server.openConnections).toBe(0));
  });

  it('an endless response head counts as failed', async () => {
    const server = await tcpServer((socket) => {
      socket.once('data', () => flood(socket, 'HTTP/1.1 200 OK\r\n', 'x-more: yes\r\n'));
    });
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${server.port}/`]));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, failed: 1 }));
    await eventually(() => expect(server.openConnections).toBe(0));
  });

  it('interim responses (100, 103) are skipped, and an endless number of them counts as failed', async () => {
    const early = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n';
    const honest = await tcpServer((socket) => {
      socket.once('data', () => socket.write(`${early}HTTP/1.1 200 OK\r\n\r\n`));
    });
    const endless = await tcpServer((socket) => void socket.once('data', () => flood(socket, '', early)));
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${honest.port}/`, `http://127.0.0.1:${endless.port}/`]));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, delivered: 1, failed: 1 }));
    await eventually(() => expect(endless.openConnections).toBe(0));
  });

  it('status 101 in response to the POST counts as failed', async () => {
    const server = await tcpServer((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'));
    });
    const alerts = sender();
    alerts.send(alertOf([`http://127.0.0.1:${server.port}/`]));
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, failed: 1 }));
    await eventually(() => expect(server.openConnections).toBe(0));
  });
});

describe('an alert over TLS', () => {
  const lookup = () => Promise.resolve(['127.0.0.1']);

  it('checks the certificate against the hostname while connecting to the pinned address', async () => {
    let serverName: unknown;
    const { port, received } = await receiver({
      isTls: true,
      answer: (request, response) => {
        serverName = (request.socket as TLSSocket & { servername?: unknown }).servername;
        response.writeHead(204).end();
      },
    });
    const alerts = sender({ ca: renewedCertificate().cert, lookup });
    alerts.send(alertOf([`https://hooks.edge.test:${port}/x`]));
    await eventually(() => expect(alerts.totals.tenant.delivered).toBe(1));
    expect(received[0]?.headers.host).toBe(`hooks.edge.test:${port}`);
    expect(serverName).toBe('hooks.edge.test');
  });

  it('counts as failed if the certificate has another name or an untrusted issuer', async () => {
    const { port, received } = await receiver({ isTls: true });
    const log = memoryLog();
    const strict = sender({ ca: renewedCertificate().cert, lookup, logger: log.logger });
    strict.send(alertOf([`https://hooks.example:${port}/`]));
    const usual = sender({ lookup, logger: log.logger });
    usual.send(alertOf([`https://hooks.edge.test:${port}/`]));
    await eventually(() => expect(log.lines).toHaveLength(2));
    const reasons = new Set(log.lines.map(({ reason }) => reason));
    expect(reasons).toEqual(new Set(['DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID']));
    expect(received).toEqual([]);
  });

  it('is abandoned after five seconds if the receiver does not finish the handshake', async () => {
    const clock = new FakeClock();
    const server = await tcpServer((socket) => void socket.resume());
    const alerts = sender({ clock });
    alerts.send(alertOf([`https://127.0.0.1:${server.port}/`]));
    await eventually(() => expect(server.openConnections).toBe(1));
    await clock.advance(5000);
    await eventually(() => expect(alerts.totals.tenant).toEqual({ ...none, timeout: 1 }));
    await eventually(() => expect(server.openConnections).toBe(0));
  });
});

it('a closed sender abandons pending alerts and sends no further alerts', async () => {
  const log = memoryLog();
  const server = await tcpServer((socket) => void socket.resume());
  const alerts = sender({ clock: systemClock, logger: log.logger });
  const alert = alertOf([`http://127.0.0.1:${server.port}/`]);
  alerts.send(alert);
  await eventually(() => expect(server.openConnections).toBe(1));
  alerts.close();
  await eventually(() => expect(server.openConnections).toBe(0));
  alerts.send(alert);
  await eventually(() => expect(log.lines).toMatchObject([{ outcome: 'failed', reason: 'the edge is stopping' }]));
  // Sends an alert with a second sender: once its connection is open, a connection of the closed sender would be open too.
  sender().send(alert);
  await eventually(() => expect(server.openConnections).toBeGreaterThan(0));
  expect(server.totalConnections).toBe(2);
});

/** Responds with a head that never ends, a few bytes at a time. */
const drip = (socket: Socket): void => {
  socket.write('HTTP/1.1 200 OK\r\n');
  const timer = setInterval(() => socket.write('x'), 5);
  socket.on('close', () => clearInterval(timer));
};

const flood = (socket: Socket, head: string, part: string): void => {
  socket.write(head);
  const parts = part.repeat(1000);
  const more = (): void => {
    while (!socket.destroyed && socket.write(parts));
  };
  socket.on('drain', more);
  more();
};
