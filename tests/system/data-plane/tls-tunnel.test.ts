// Tests of `tunnel tls` from end to end: visitors shake hands with the local service, and the edge passes on bytes that it cannot read.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { companyCertificate, deterministicBytes, eventually, freePort, hashOf, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, startWeb } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, TLS_FLAGS } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { echo, SERVICE_CN, startTlsService, type TlsService, visitTls } from '../tls-service.fixture.ts';
import { ask, endOf, readAll, visit } from '../visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tls: true, tables: '[load_balancing]\nenabled = true' });
});
afterAll(() => shared.close());

const open = async (harness: Harness, name: string, port: number, flags: readonly string[] = []) => {
  const tunnel = await harness.tls(stack, port, { flags: ['--subdomain', name, ...TLS_FLAGS, ...flags] });
  const ready = await tunnel.ready();
  return { tunnel, ready, port: ready.assigned_port, host: `${name}.localhost` };
};

const nameSeen = (socket: TLSSocket): unknown => socket.getPeerCertificate().subject?.CN;

describe.concurrent('a TLS tunnel', () => {
  it('is announced by its host and the HTTPS port, and listed as tcp in the REST API', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    const { ready, host, port } = await open(harness, 'announced', service.port);
    expect(ready).toMatchObject({
      public_url: `tls://${host}:${port}`,
      protocol: 'tls',
      name: `tls-${service.port}`,
      local: `127.0.0.1:${service.port}`,
      inspect_url: null,
    });
    expect(await stack.tunnel(ready.tunnel_id)).toMatchObject({
      protocol: 'tcp',
      label: host,
      public_url: `tls://${host}:${port}`,
      assigned_port: port,
    });
    expect((await askSecurely({ host: `announced.localhost:${port}`, port }).catch(String)) as string).toContain(
      'self',
    );
  });

  it('shows visitors the certificate of the service, and counts connections and bytes', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    const { port, host, ready } = await open(harness, 'seen', service.port);
    const visitor = await visitTls(port, host);
    expect([visitor.authorized, nameSeen(visitor)]).toEqual([true, SERVICE_CN]);
    expect(await ask(visitor, 'hello')).toBe('hello');
    expect(service.sockets[0]).toMatchObject({ servername: host });
    visitor.destroy();
    await eventually(async () => {
      const row = await stack.tunnel(ready.tunnel_id);
      expect(row?.request_count).toBe(1);
      expect(row?.bytes_proxied).toBeGreaterThan(1000);
    });
  });

  it('is found regardless of the letter case of its host', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    const { port } = await open(harness, 'cased', service.port);
    const visitor = await visitTls(port, 'CaSeD.LocalHost');
    expect(nameSeen(visitor)).toBe(SERVICE_CN);
    visitor.destroy();
  });

  it('lets the service require a client certificate from visitors', async ({ harness }) => {
    const { cert, key } = testCertificate();
    const service = harness.use(
      await startTlsService((socket) => socket.end(String(socket.getPeerCertificate().subject.CN)), {
        requestCert: true,
        rejectUnauthorized: true,
        ca: cert,
      }),
    );
    const { port, host } = await open(harness, 'mutual', service.port);
    const visitor = await visitTls(port, host, { cert, key });
    expect((await readAll(visitor)).toString()).toBe('localhost');
    const stranger = await visitTls(port, host);
    expect(await endOf(stranger)).not.toBe('secure');
    expect(service.sockets).toHaveLength(1);
  });

  it('passes acme-tls/1 to the service, which can thus get its own certificates', async ({ harness }) => {
    const service = harness.use(await startTlsService((socket) => socket.end('ok'), { ALPNProtocols: ['acme-tls/1'] }));
    const { port, host } = await open(harness, 'challenged', service.port);
    const visitor = await visitTls(port, host, { ALPNProtocols: ['acme-tls/1'] });
    expect([visitor.alpnProtocol, nameSeen(visitor)]).toEqual(['acme-tls/1', SERVICE_CN]);
    visitor.destroy();
  });

  it('passes the ALPN protocol of clients, tunnel/1, to the service as well', async ({ harness }) => {
    const service = harness.use(
      await startTlsService((socket) => socket.end('ok'), { ALPNProtocols: ['tunnel/1', 'h2'] }),
    );
    const { port, host } = await open(harness, 'alpn', service.port);
    const visitor = await visitTls(port, host, { ALPNProtocols: ['tunnel/1', 'h2'] });
    expect([visitor.alpnProtocol, nameSeen(visitor)]).toEqual(['tunnel/1', SERVICE_CN]);
    visitor.destroy();
  });

  it('accepts a ClientHello that arrives byte by byte', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    const { port, host } = await open(harness, 'drip', service.port);
    const wire = await visit(port);
    const visitor = connectTls({
      socket: drip(wire),
      servername: host,
      ca: companyCertificate().cert,
      checkServerIdentity: () => undefined,
    });
    await once(visitor, 'secureConnect');
    expect([nameSeen(visitor), await ask(visitor, 'slowly')]).toEqual([SERVICE_CN, 'slowly']);
    visitor.destroy();
  });

  it('carries 20 MB byte for byte in both directions at once', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    const { port, host } = await open(harness, 'bulk', service.port);
    const bytes = deterministicBytes(20_000_000, 11);
    const visitor = await visitTls(port, host);
    const heard = readAll(visitor);
    visitor.end(bytes);
    expect(hashOf(await heard)).toBe(hashOf(bytes));
  });

  it('passes a half-close of the visitor: the service responds after the FIN', async ({ harness }) => {
    const service = harness.use(
      await startTlsService((socket) => void readAll(socket).then((all) => socket.end(`${all.length} bytes`))),
    );
    const { port, host } = await open(harness, 'halves', service.port);
    const visitor = await visitTls(port, host, { allowHalfOpen: true } as object);
    visitor.end(Buffer.alloc(100_000));
    expect((await readAll(visitor)).toString()).toBe('100000 bytes');
  });

  it('serves other visitors while some visitors do not read', async ({ harness }) => {
    const bytes = deterministicBytes(30_000_000, 5);
    const service = harness.use(await startTlsService((socket) => void socket.end(bytes)));
    const { port, host } = await open(harness, 'stalled', service.port);
    const stalled = await Promise.all(Array.from({ length: 2 }, () => visitTls(port, host)));
    for (const visitor of stalled) visitor.pause();
    const reader = await visitTls(port, host);
    expect(hashOf(await readAll(reader))).toBe(hashOf(bytes));
    for (const visitor of stalled) visitor.destroy();
  });

  it('closes the connection to the service when a visitor leaves, and resets the visitor when the service does', async ({
    harness,
  }) => {
    const service = harness.use(await startTlsService(echo));
    const { port, host } = await open(harness, 'leaving', service.port);
    const wire = await visit(port);
    const first = await visitTls(port, host, { socket: wire });
    expect(await ask(first, 'one')).toBe('one');
    const seenByService = once(service.wires[0] as Socket, 'close');
    wire.resetAndDestroy();
    await seenByService;
    const second = await visitTls(port, host);
    expect(await ask(second, 'two')).toBe('two');
    const seenByVisitor = endOf(second);
    service.wires[1]?.resetAndDestroy();
    expect(await seenByVisitor).toBe('ECONNRESET');
  });

  it('resets visitors while the service is down, and the client reports the reason', async ({ harness }) => {
    const down = await freePort();
    const { port, host, tunnel } = await open(harness, 'down', down);
    await expect(visitTls(port, host)).rejects.toThrow('ECONNRESET');
    expect(await tunnel.waitFor('error')).toMatchObject({ code: 'CLIENT_LOCAL_DIAL' });
  });

  it('writes the PROXY protocol header before the ClientHello', async ({ harness }) => {
    const heard: Buffer[] = [];
    const { createServer } = await import('node:net');
    const server = createServer((socket) => socket.on('data', (bytes) => heard.push(bytes)).on('error', () => {}));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    harness.use({ close: async () => void server.close() });
    const { port: local } = server.address() as { port: number };
    const { port, host } = await open(harness, 'proxied', local, ['--proxy-protocol', 'v1']);
    const visitor = connectTls({ host: '127.0.0.1', port, servername: host });
    visitor.on('error', () => {});
    const line = await eventually(() => {
      const all = Buffer.concat(heard);
      const end = all.indexOf('\r\n');
      expect(all.length).toBeGreaterThan(end + 100);
      // The first TLS record follows right after the PROXY line.
      expect(all[end + 2]).toBe(22);
      return all.toString('latin1', 0, end);
    });
    expect(line).toBe(`PROXY TCP4 127.0.0.1 127.0.0.1 ${visitor.localPort} ${port}`);
    visitor.destroy();
  });

  it('resets visitors from addresses denied by its rules', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    const { port, host } = await open(harness, 'denied', service.port, ['--allow-cidr', '192.0.2.0/24']);
    await expect(visitTls(port, host)).rejects.toThrow('ECONNRESET');
    expect(service.sockets).toEqual([]);
  });
});

describe.concurrent('nested names of TLS tunnels', () => {
  it('are matched exact before wildcard, each with its own service', async ({ harness }) => {
    const exact = harness.use(await startTlsService((socket) => socket.end('exact')));
    const any = harness.use(await startTlsService((socket) => socket.end('any')));
    const { port, ready } = await open(harness, '*.nest', any.port);
    expect(ready.public_url).toBe(`tls://*.nest.localhost:${port}`);
    await open(harness, 'a.nest', exact.port);
    const said = async (host: string): Promise<string> => (await readAll(await visitTls(port, host))).toString();
    expect(await said('a.nest.localhost')).toBe('exact');
    expect(await said('b.nest.localhost')).toBe('any');
    // A wildcard covers a single label, so the edge uses its own certificate for deeper and shorter names.
    for (const host of ['nest.localhost', 'a.b.nest.localhost']) {
      await expect(visitTls(port, host)).rejects.toThrow('self-signed');
    }
  });

  it('allow an HTTP tunnel below a TLS wildcard', async ({ harness }) => {
    const service = harness.use(await startTlsService((socket) => socket.end('tls')));
    const web = harness.use(await startWeb((_, response) => void response.end('web')));
    const { port } = await open(harness, '*.mix', service.port);
    const where = ['--server', stack.control, '--token-file', stack.tokenFile, '--json', ...TLS_FLAGS];
    await (await harness.run(['http', String(web.port), '--subdomain', 'web.mix', ...where])).ready();
    expect((await askSecurely({ host: `web.mix.localhost:${port}`, port })).text).toBe('web');
    expect((await readAll(await visitTls(port, 'other.mix.localhost'))).toString()).toBe('tls');
  });
});

describe.concurrent('the host of a tunnel', () => {
  it('belongs to the protocol that came first, HTTP or TLS', async ({ harness }) => {
    const service = harness.use(await startTlsService(echo));
    await open(harness, 'first-tls', service.port);
    const where = ['--server', stack.control, '--token-file', stack.tokenFile, '--json', ...TLS_FLAGS];
    const http = await harness.run(['http', '1', '--subdomain', 'first-tls', ...where]);
    expect(await http.waitFor('error')).toMatchObject({ code: 'TUNNEL_SUBDOMAIN_IN_USE' });
    const web = harness.use(await startWeb((_, response) => void response.end('web')));
    await (await harness.run(['http', String(web.port), '--subdomain', 'first-http', ...where])).ready();
    const tls = await harness.tls(stack, service.port, { flags: ['--subdomain', 'first-http', ...TLS_FLAGS] });
    expect(await tls.waitFor('error')).toMatchObject({
      code: 'TUNNEL_SUBDOMAIN_IN_USE',
      message: "subdomain 'first-http' is already in use",
    });
  });

  it('of a TLS tunnel gets a 404 over plain HTTP, and a 421 on an HTTP/2 connection to another name', async ({
    harness,
  }) => {
    const plain = await harness.stack({ tls: true, server: 'plain_http = "proxy"' });
    const service = harness.use(await startTlsService(echo));
    const web = harness.use(await startWeb((_, response) => void response.end('web')));
    const where = ['--server', plain.control, '--token-file', plain.tokenFile, '--json', ...TLS_FLAGS];
    const tls = await (await harness.tls(plain, service.port, { flags: ['--subdomain', 'db', ...TLS_FLAGS] })).ready();
    await (await harness.run(['http', String(web.port), '--subdomain', 'web', ...where])).ready();
    const httpPort = Number(new URL(plain.run.http_url).port);
    const inClear = await askHttp({ host: `db.localhost:${httpPort}`, port: httpPort });
    expect([inClear.status, inClear.headers['x-tunnel-error']]).toEqual([404, 'TUNNEL_NOT_FOUND']);
    const session = dialHttp2(harness, { host: `web.localhost:${tls.assigned_port}`, port: tls.assigned_port });
    expect((await askHttp2(session, '/')).headers[':status']).toBe(200);
    const request = session.request({ ':path': '/', ':authority': `db.localhost:${tls.assigned_port}` });
    const [headers] = (await once(request, 'response')) as [Record<string, unknown>];
    expect([headers[':status'], headers['x-tunnel-error']]).toEqual([421, 'HTTP_MISDIRECTED']);
    request.close();
  });
});

it('a group of two TLS tunnels keeps serving while a member dies, and is listed by its host', async ({ harness }) => {
  const folder = await harness.folder();
  const key = join(folder, 'key');
  writeFileSync(key, 'shared by both', { mode: 0o600 });
  const services: TlsService[] = [];
  const programs = [];
  for (let n = 0; n < 2; n += 1) {
    const service = harness.use(await startTlsService((socket) => socket.end(String(n))));
    services.push(service);
    const flags = [
      '--group',
      'pair',
      '--group-key-file',
      key,
      '--health',
      'tcp',
      '--health-interval',
      '0.2',
      ...TLS_FLAGS,
    ];
    programs.push(await harness.tls(stack, service.port, { flags }));
  }
  const [first, second] = await Promise.all(programs.map((program) => program.ready()));
  expect(second?.public_url).toBe(first?.public_url);
  const port = first?.assigned_port ?? 0;
  const served = async (): Promise<string> => (await readAll(await visitTls(port, 'pair.localhost'))).toString();
  // Visitors reach the two members as soon as the edge knows the health of the members.
  const seen = new Set<string>();
  await eventually(async () => {
    seen.add(await served());
    expect(seen.size).toBe(2);
  });
  const groups = (await (await stack.api('/api/groups')).json()) as { protocol: string; label: string }[];
  expect(groups).toMatchObject([{ protocol: 'tcp', label: 'pair.localhost', name: 'pair', member_count: 2 }]);
  const events = await stack.api('/api/groups/tcp/pair.localhost/events');
  expect([events.status, events.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  await events.body?.cancel();
  expect((await stack.api('/api/groups/http/pair/events')).status).toBe(404);
  await services[0]?.close();
  for (let n = 0; n < 20; n += 1) expect(await served()).toBe('1');
  programs[0]?.signal('SIGKILL');
  for (let n = 0; n < 20; n += 1) expect(await served()).toBe('1');
});

it('an edge without an HTTPS port refuses a TLS tunnel with TUNNEL_TLS_UNAVAILABLE, and the client ends with 4', async ({
  harness,
}) => {
  const plain = await harness.stack();
  const tunnel = await harness.tls(plain, 1, { flags: ['--subdomain', 'db'] });
  expect(await tunnel.waitFor('error')).toMatchObject({
    code: 'TUNNEL_TLS_UNAVAILABLE',
    message: 'tls tunnels need the https port',
  });
  expect(await tunnel.exitCode()).toBe(4);
});

/** Returns a stream that writes every byte as a separate TCP segment. */
const drip = (wire: Socket): Duplex => {
  wire.setNoDelay(true);
  return new Duplex({
    read: () => void wire.resume(),
    construct(done) {
      wire.on('data', (bytes) => this.push(bytes)).on('end', () => this.push(null));
      done();
    },
    write: (bytes: Buffer, _encoding, done) =>
      void (async () => {
        for (let at = 0; at < bytes.length; at += 1) {
          await new Promise((written) => wire.write(bytes.subarray(at, at + 1), written));
        }
        done();
      })(),
    destroy: (error, done) => {
      wire.destroy();
      done(error);
    },
  });
};
