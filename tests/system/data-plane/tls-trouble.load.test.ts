// Tests of TLS tunnels and of the HTTPS port under visitors that leave at the wrong moment, send too much, do not read, or arrive all at
// once.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { companyCertificate, deterministicBytes, eventually, hashOf, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, expect } from 'vitest';
import { hello, helloOfNode, protocols, serverNames } from '../../../packages/http-shell/src/tls/hello.fixture.ts';
import { startWeb } from '../http-tunnels.fixture.ts';
import { askSecurely, TLS_FLAGS } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { echo, SERVICE_CN, startTlsService, visitTls } from '../tls-service.fixture.ts';
import { ask, endOf, readAll, visit } from '../visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
/** Stack in a separate process, so that its memory can be measured apart from the test's memory. */
let measured: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tls: true, tables: '[load_balancing]\nenabled = true' });
  measured = await shared.stack({ tls: true, programs: true });
});
afterAll(() => shared.close());

const open = async (harness: Harness, name: string, port: number, at = stack) => {
  const flags = ['--subdomain', name, ...TLS_FLAGS];
  const tunnel = await harness.tls(at, port, { flags, programs: at === measured });
  return { tunnel, port: (await tunnel.ready()).assigned_port, host: `${name}.localhost` };
};

const httpsPortOf = ({ run }: Stack): number => Number(new URL((run as { https_url?: string }).https_url ?? '').port);

/** Returns the counts of tunnel_tls_connections_total by kind, without zeros. */
const kinds = async (at = stack): Promise<Record<string, number>> => {
  const metrics = await (await fetch(at.run.metrics_url)).text();
  const counts: Record<string, number> = {};
  for (const [, kind = '', count] of metrics.matchAll(/^tunnel_tls_connections_total\{kind="(\w+)"\} ([1-9]\d*)$/gm)) {
    counts[kind] = Number(count);
  }
  return counts;
};

const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Starts a service that sees the raw TLS bytes of visitors. */
const startRaw = async (harness: Harness, serve: (socket: Socket) => void) => {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on('error', () => {}));
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return harness.use({ port: (server.address() as AddressInfo).port, sockets, close });
};

/** Returns the common name of the certificate that a visitor sees, or the error of the visit. */
const seenAt = async (port: number, host: string): Promise<string> => {
  const visitor = await visitTls(port, host).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
  if (typeof visitor === 'string') return visitor;
  const { subject } = visitor.getPeerCertificate();
  // The socket is ended, not destroyed, so that the last handshake message arrives.
  visitor.resume().end();
  return String(subject.CN);
};

const OWN_CERTIFICATE = 'DEPTH_ZERO_SELF_SIGNED_CERT';

it('the edge counts each TLS connection once, by its outcome', async ({ harness }) => {
  const at = await harness.stack({ tls: true, limits: 'connections_per_address = 20' });
  const service = harness.use(await startTlsService(echo));
  const web = harness.use(await startWeb((_, response) => void response.end('web')));
  const { port, host } = await open(harness, 'counted', service.port, at);
  const where = ['--server', at.control, '--token-file', at.tokenFile, '--json', ...TLS_FLAGS];
  await (await harness.run(['http', String(web.port), '--subdomain', 'web', ...where])).ready();
  const bytes = await helloOfNode({ servername: host });
  const fateOf = async (first: Uint8Array): Promise<string> => {
    const visitor = await visit(port);
    visitor.end(first);
    return endOf(visitor);
  };
  for (let cut = 0; cut < 100; cut += 10) await fateOf(bytes.subarray(0, cut));
  for (let n = 0; n < 5; n += 1) await fateOf(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
  for (let n = 0; n < 4; n += 1) await fateOf(hello(serverNames('web.localhost'), protocols('acme-tls/1')));
  for (let n = 0; n < 3; n += 1) expect((await askSecurely({ host: `web.localhost:${port}`, port })).text).toBe('web');
  await eventually(async () => expect(await kinds(at)).toEqual({ failed: 15, challenge: 4, terminated: 3 }));
  // Connections over the limit of an address are reset before they reach the service.
  const visitors = await Promise.allSettled(Array.from({ length: 30 }, () => visitTls(port, host)));
  const served = visitors.filter(({ status }) => status === 'fulfilled').length;
  expect([served, service.wires.length]).toEqual([20, 20]);
  await eventually(async () => {
    expect(await kinds(at)).toEqual({ failed: 25, challenge: 4, terminated: 3, passthrough: 20 });
  });
  for (const visitor of visitors) if (visitor.status === 'fulfilled') visitor.value.destroy();
  await eventually(async () => expect(await seenAt(port, host)).toBe(SERVICE_CN));
});

it('a TLS tunnel keeps the bytes behind the hello, byte for byte, while the service is slow', async ({ harness }) => {
  const bytes = (host: string): Promise<Buffer> => helloOfNode({ servername: host });
  let release: () => void = () => {};
  const heard: Buffer[] = [];
  const service = await startRaw(harness, (socket) => {
    release = () => void socket.on('data', (piece: Buffer) => heard.push(piece));
    socket.on('end', () => socket.end('all of it'));
  });
  const { port, host } = await open(harness, 'early', service.port);
  const sent = Buffer.concat([await bytes(host), deterministicBytes(30_000_000, 3)]);
  const visitor = await visit(port);
  visitor.end(sent);
  const said = readAll(visitor);
  await eventually(() => expect(service.sockets).toHaveLength(1));
  release();
  expect((await said).toString()).toBe('all of it');
  expect(hashOf(Buffer.concat(heard))).toBe(hashOf(sent));
});

it('a TLS tunnel buffers little of 200 MB for visitors that do not read, half-closed or not', async ({ harness }) => {
  const piece = Buffer.alloc(1_000_000);
  const written = new Map<Socket, number>();
  const service = await startRaw(harness, (socket) => {
    const more = (): void => {
      for (let count = written.get(socket) ?? 0; count < 200; ) {
        written.set(socket, ++count);
        if (!socket.write(piece)) return;
      }
    };
    socket.on('drain', more).resume();
    more();
  });
  const { port, host, tunnel } = await open(harness, 'unread', service.port, measured);
  const first = await helloOfNode({ servername: host });
  const pids = [measured.program.pid, tunnel.pid];
  const before = pids.map(residentMb);
  const visitors: Socket[] = [];
  for (let n = 0; n < 10; n += 1) {
    const visitor = (await visit(port)).pause();
    visitor.write(first);
    if (n % 2 === 0) visitor.end();
    visitors.push(visitor);
  }
  let last = '';
  await eventually(
    () => {
      const seen = last;
      const now = [...written.values()].join();
      last = now;
      expect([written.size, seen]).toEqual([10, now]);
    },
    { intervalMs: 500 },
  );
  expect(Math.max(...written.values())).toBeLessThan(100);
  for (const [at, pid] of pids.entries()) expect(residentMb(pid) - (before[at] ?? 0)).toBeLessThan(60);
  for (const visitor of visitors) visitor.destroy();
});

it('a TLS tunnel serves 1,000 visitors at once', async ({ harness }) => {
  const service = await startRaw(harness, (socket) => void socket.once('data', () => socket.end('x')));
  const { port, host } = await open(harness, 'many', service.port);
  const first = await helloOfNode({ servername: host });
  const fates = Array.from({ length: 1000 }, async () => {
    const visitor = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    visitor.write(first);
    const said = await readAll(visitor);
    visitor.destroy();
    return said.toString();
  });
  expect(new Set(await Promise.all(fates))).toEqual(new Set(['x']));
});

it('the HTTPS port serves the exact name or the edge, never a wildcard of the other protocol', async ({ harness }) => {
  const service = harness.use(await startTlsService((socket) => socket.end('tls')));
  const web = harness.use(await startWeb((_, response) => void response.end('web')));
  const where = ['--server', stack.control, '--token-file', stack.tokenFile, '--json', ...TLS_FLAGS];
  const http = async (name: string) => {
    const program = await harness.run(['http', String(web.port), '--subdomain', name, ...where]);
    await program.ready();
    return program;
  };
  const port = httpsPortOf(stack);
  const asked = async (name: string): Promise<unknown> => {
    const { status, text } = await askSecurely({ host: `${name}.localhost:${port}`, port });
    return status === 200 ? text : status;
  };
  await http('*.one');
  const { tunnel } = await open(harness, 'a.one', service.port);
  expect([await seenAt(port, 'a.one.localhost'), await asked('b.one')]).toEqual([SERVICE_CN, 'web']);
  await open(harness, '*.two', service.port);
  const exact = await http('a.two');
  expect([await asked('a.two'), await seenAt(port, 'b.two.localhost')]).toEqual(['web', SERVICE_CN]);
  // The clients of both exact names are killed. The wildcard services must not get the visitors of an exact name.
  tunnel.signal('SIGKILL');
  exact.signal('SIGKILL');
  // The edge must not terminate TLS meant for the service either.
  await eventually(async () => expect(await seenAt(port, 'a.one.localhost')).toBe('ECONNRESET'));
  await eventually(async () => expect(await asked('a.two')).toBe(502));
  expect(await seenAt(port, 'a.two.localhost')).toBe(OWN_CERTIFICATE);
});

it('a group of TLS tunnels refuses HTTP members, and a group of HTTP tunnels refuses TLS members', async ({
  harness,
}) => {
  const key = join(await harness.folder(), 'key');
  writeFileSync(key, 'shared by both', { mode: 0o600 });
  const where = ['--server', stack.control, '--token-file', stack.tokenFile, '--json', ...TLS_FLAGS];
  const member = (protocol: string, group: string) =>
    harness.run([protocol, '1', '--group', group, '--group-key-file', key, ...where]);
  for (const [first, second] of [
    ['tls', 'http'],
    ['http', 'tls'],
  ] as const) {
    await (await member(first, `of-${first}`)).ready();
    const refused = await (await member(second, `of-${first}`)).waitFor('error');
    expect(refused).toMatchObject({ code: 'GROUP_PROTOCOL_MISMATCH' });
  }
});

it('no handshake fails while certificate files change', async ({ harness }) => {
  const folder = await harness.folder();
  const cert = join(folder, 'cert.pem');
  const key = join(folder, 'key.pem');
  const put = (pair: { cert: string; key: string }): void => {
    writeFileSync(cert, pair.cert);
    writeFileSync(key, pair.key);
  };
  put(testCertificate());
  const at = await harness.stack({ tables: `[tls]\ncert_path = "${cert}"\nkey_path = "${key}"` });
  const port = httpsPortOf(at);
  const seen: string[] = [];
  let isOver = false;
  const visitors = [['http/1.1'], ['h2', 'http/1.1'], ['http/1.1'], ['h2']].map(async (ALPNProtocols) => {
    while (!isOver) {
      const visitor = await visitTls(port, 'any.localhost', { rejectUnauthorized: false, ALPNProtocols });
      seen.push(String(visitor.getPeerCertificate().subject.CN));
      const closed = once(visitor, 'close');
      visitor.resume().end();
      await closed;
    }
  });
  for (const pair of [companyCertificate(), testCertificate(), companyCertificate()]) {
    put(pair);
    const name = pair.cert === companyCertificate().cert ? SERVICE_CN : 'localhost';
    await eventually(() => expect(seen.at(-1)).toBe(name));
  }
  isOver = true;
  await Promise.all(visitors);
  await eventually(async () => expect(await kinds(at)).toEqual({ terminated: seen.length }));
});

it('SIGTERM waits for TLS passthrough connections, but not for an incomplete hello', async ({ harness }) => {
  const at = await harness.stack({ tls: true });
  const service = harness.use(await startTlsService(echo));
  const { port, host } = await open(harness, 'drained', service.port, at);
  const visitor = await visitTls(port, host);
  expect(await ask(visitor, 'before')).toBe('before');
  const half = await visit(port);
  half.write((await helloOfNode({ servername: host })).subarray(0, 100));
  at.program.signal('SIGTERM');
  await eventually(async () => expect(await seenAt(port, host)).toBe('ECONNREFUSED'));
  expect(await ask(visitor, 'meanwhile')).toBe('meanwhile');
  visitor.end();
  expect(await at.program.waitForExit({ timeoutMs: 20_000 })).toMatchObject({ code: 0 });
  half.destroy();
});

it('a flood of unknown server names costs little memory and few log lines', async () => {
  const port = httpsPortOf(measured);
  const { pid, stdout, stderr } = measured.program;
  const flood = async (names: number): Promise<void> => {
    for (let n = 0; n < names; n += 100) {
      const visitors = Array.from({ length: 100 }, async (_, at) => {
        const visitor = connect({ host: '127.0.0.1', port }).on('error', () => {});
        // A reset is a valid end as well, but once() would reject on the error.
        const closed = new Promise<void>((resolve) => visitor.once('close', () => resolve()));
        visitor.resume().end(hello(serverNames(`unknown-${n + at}.localhost`)));
        await closed;
      });
      await Promise.all(visitors);
    }
  };
  await flood(1000);
  const megabytes = residentMb(pid);
  const lines = stdout.length + stderr.length;
  await flood(4000);
  expect(residentMb(pid) - megabytes).toBeLessThan(25);
  expect(stdout.length + stderr.length - lines).toBeLessThan(5);
});
