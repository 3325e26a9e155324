import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import type { Check } from '@tunnel/client';
import type { Edge } from '@tunnel/edge';
import {
  companyCertificate,
  expiredCertificate,
  startConnectProxy,
  startTcpServer,
  type TcpServer,
  type TemporaryDirectory,
  type TestProxy,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

let home: TemporaryDirectory;
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  home = await temporaryDirectory();
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await home.close();
});

const edgeOf = async (overrides: Parameters<typeof startEdge>[0] = {}): Promise<Edge> => {
  const edge = await startEdge(overrides);
  closing.push(() => edge.stop({ drainMs: 0 }));
  return edge;
};

const fileOf = (name: string, text: string, mode = 0o600): string => {
  const path = join(home.path, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};

interface Diagnosis {
  readonly ok: boolean;
  readonly server: string | null;
  readonly checks: readonly Check[];
}

const diagnosed = async (
  args: readonly string[],
  options: Partial<TestIoOptions> = {},
): Promise<Diagnosis & { readonly code: number; readonly io: TestIo }> => {
  const io = makeTestIo({ home: home.path, ...options });
  const code = await run(['doctor', '--json', '--no-bandwidth', ...args], io);
  return { ...(JSON.parse(io.out()) as Diagnosis), code, io };
};

const withStatus = ({ checks }: Diagnosis, status: Check['status']): string[] =>
  checks.filter((check) => check.status === status).map(({ id }) => id);

const checkOf = ({ checks }: Diagnosis, id: Check['id']): Check => checks.find((check) => check.id === id) as Check;

const plainFlags = (edge: Edge): string[] => ['--server', `127.0.0.1:${edge.addresses.control.port}`];

describe('tunnel doctor', () => {
  it('runs every check against a correct setup and measures latency and bandwidth', async () => {
    const edge = await edgeOf({ limits: { udp_port_range: [31_740, 31_749] } });
    const io = makeTestIo({ home: home.path });
    const token = fileOf('key', 'admin');
    expect(await run(['doctor', '--json', ...plainFlags(edge), '--token-file', token], io)).toBe(0);
    const found = JSON.parse(io.out()) as Diagnosis;
    expect(found.ok).toBe(true);
    expect(found.checks.map(({ id }) => id).join(' ')).toBe(
      'config key_file clock proxy dns tcp tls edge key carriers latency bandwidth udp nat targets platform',
    );
    expect(withStatus(found, 'ok')).toEqual(
      expect.arrayContaining([
        'config',
        'key_file',
        'clock',
        'tcp',
        'edge',
        'key',
        'carriers',
        'latency',
        'udp',
        'nat',
      ]),
    );
    expect(checkOf(found, 'bandwidth').detail).toMatch(/Mbit\/s down, .* Mbit\/s up/);
    for (const check of found.checks)
      expect(Object.keys(check)).toEqual(['id', 'title', 'status', 'detail', 'hint', 'ms']);
    expect(io.out()).not.toContain('admin"');
  });

  it('reports a refused connection and skips the later checks', async () => {
    const gone = await startTcpServer(() => {});
    await gone.close();
    const found = await diagnosed(['--server', `127.0.0.1:${gone.port}`, '--token', 'admin']);
    expect(found).toMatchObject({ ok: false, code: 1, server: `127.0.0.1:${gone.port}` });
    expect(withStatus(found, 'fail')).toEqual(['tcp']);
    expect(checkOf(found, 'tcp').detail).toContain('connection refused');
    expect(checkOf(found, 'edge')).toMatchObject({ status: 'skip', detail: 'skipped: fix connection first' });
  });

  it('reports a wrong API key without printing it', async () => {
    const edge = await edgeOf();
    const found = await diagnosed([...plainFlags(edge), '--token', 'wrong-key-of-mine']);
    expect(withStatus(found, 'fail')).toEqual(['key']);
    expect(found.io.out()).not.toContain('wrong-key-of-mine');
  });

  it('still runs the checks that need no API key when the key is missing', async () => {
    const edge = await edgeOf();
    const found = await diagnosed(plainFlags(edge));
    expect(withStatus(found, 'fail')).toEqual(['key_file']);
    expect(checkOf(found, 'edge').status).toBe('ok');
    expect(checkOf(found, 'key').status).toBe('skip');
  });

  it('warns about a key file that other users can read', async () => {
    const edge = await edgeOf();
    const found = await diagnosed([...plainFlags(edge), '--token-file', fileOf('key', 'admin', 0o644)]);
    expect(checkOf(found, 'key_file')).toMatchObject({ status: 'warn', hint: `chmod 600 ${join(home.path, 'key')}` });
  });

  it('reports an expired certificate', async () => {
    const { cert, key } = expiredCertificate();
    const tls = { cert_path: fileOf('cert.pem', cert), key_path: fileOf('key.pem', key) };
    const edge = await edgeOf({ tls });
    const found = await diagnosed([...plainFlags(edge), '--tls', '--ca-file', tls.cert_path, '--token', 'admin']);
    expect(withStatus(found, 'fail')).toEqual(['tls']);
    expect(checkOf(found, 'tls').detail).toContain('expired');
  });

  it('shows issuer and ALPN protocol of a valid certificate', async () => {
    const { cert, key } = testCertificate();
    const tls = { cert_path: fileOf('cert.pem', cert), key_path: fileOf('key.pem', key) };
    const edge = await edgeOf({ tls });
    const found = await diagnosed([...plainFlags(edge), '--tls', '--ca-file', tls.cert_path, '--token', 'admin']);
    expect(checkOf(found, 'tls')).toMatchObject({ status: 'ok' });
    expect(checkOf(found, 'tls').detail).toMatch(/TLSv1\.3, issued by .*ALPN tunnel\/1/);
  });

  it('suggests --tls when the server speaks TLS and the client does not', async () => {
    const { cert, key } = testCertificate();
    const edge = await edgeOf({ tls: { cert_path: fileOf('cert.pem', cert), key_path: fileOf('key.pem', key) } });
    const found = await diagnosed([...plainFlags(edge), '--token', 'admin']);
    expect(withStatus(found, 'fail')).toEqual(['edge']);
    expect(checkOf(found, 'edge').hint).toContain('--tls');
  });

  it('reports a clock that is ten minutes off', async () => {
    const edge = await edgeOf();
    const liar = await lyingServer(edge.addresses.control.port, 10 * 60_000);
    const found = await diagnosed(['--server', `127.0.0.1:${liar.port}`, '--token', 'admin']);
    expect(withStatus(found, 'fail')).toEqual(['clock']);
    expect(checkOf(found, 'clock').detail).toBe('this computer is 10 min behind the server');
    expect(checkOf(found, 'carriers').status).toBe('ok');
  });

  it('reports a proxy that rejects the password, without printing the password', async () => {
    const edge = await edgeOf();
    const proxy: TestProxy = await startConnectProxy({ credentials: 'alice:right' });
    closing.push(() => proxy.close());
    const url = `http://alice:wrong-password@127.0.0.1:${proxy.port}`;
    const found = await diagnosed([...plainFlags(edge), '--token', 'admin', '--proxy', url]);
    expect(withStatus(found, 'fail')).toEqual(['proxy']);
    expect(found.io.out()).not.toContain('wrong-password');
  });

  it('passes all checks through a working proxy', async () => {
    const edge = await edgeOf();
    const proxy = await startConnectProxy();
    closing.push(() => proxy.close());
    const found = await diagnosed([
      ...plainFlags(edge),
      '--token',
      'admin',
      '--proxy',
      `http://127.0.0.1:${proxy.port}`,
    ]);
    expect(withStatus(found, 'fail')).toEqual([]);
    expect(checkOf(found, 'proxy')).toMatchObject({ status: 'ok' });
    expect(checkOf(found, 'carriers').detail).toBe('4 of 4 open');
  });

  it('warns when a proxy intercepts TLS', async () => {
    const { cert, key } = testCertificate();
    const edge = await edgeOf({ tls: { cert_path: fileOf('cert.pem', cert), key_path: fileOf('key.pem', key) } });
    const proxy = await startConnectProxy({ opensTls: companyCertificate() });
    closing.push(() => proxy.close());
    const found = await diagnosed([
      ...plainFlags(edge),
      ...['--tls', '--ca-file', fileOf('company.pem', companyCertificate().cert), '--token', 'admin'],
      ...['--proxy', `http://127.0.0.1:${proxy.port}`],
    ]);
    expect(checkOf(found, 'tls').detail).toContain('issued by Company Proxy, 3');
    expect(checkOf(found, 'tls')).toMatchObject({ status: 'warn' });
    expect(checkOf(found, 'tls').detail).toContain("the edge's certificate is issued by localhost: TLS is intercepted");
    expect(withStatus(found, 'fail')).toEqual([]);
  });

  it('reports a local service that is down, next to one that is up', async () => {
    const edge = await edgeOf();
    const alive: TcpServer = await startTcpServer(() => {});
    closing.push(() => alive.close());
    const dead = await startTcpServer(() => {});
    await dead.close();
    const config = fileOf(
      'config.yml',
      `tunnels:\n  web: { proto: http, local_port: ${alive.port} }\n  db: { proto: tcp, local_port: ${dead.port} }\n  dns: { proto: udp, local_port: 53 }\n`,
    );
    const found = await diagnosed([...plainFlags(edge), '--token', 'admin', '--config', config]);
    expect(withStatus(found, 'fail')).toEqual(['targets']);
    expect(checkOf(found, 'targets').detail).toBe(`db 127.0.0.1:${dead.port}: connection refused`);
  });

  it('reports a missing folder of a file tunnel', async () => {
    const edge = await edgeOf();
    mkdirSync(join(home.path, 'dist'));
    const config = fileOf(
      'config.yml',
      'tunnels:\n  site: { proto: http, files: { dir: ./dist } }\n  gone: { proto: http, files: { dir: ./gone } }\n',
    );
    const found = await diagnosed([...plainFlags(edge), '--token', 'admin', '--config', config]);
    expect(checkOf(found, 'targets').detail).toMatch(/^gone files:.*gone: no such folder$/);
  });

  it('reports the line of an invalid config file, without any network check', async () => {
    const config = fileOf('config.yml', 'servr: example.com\n');
    const found = await diagnosed(['--config', config]);
    expect(withStatus(found, 'fail')).toEqual(['config']);
    expect(checkOf(found, 'config').detail).toContain('config.yml:1');
    expect(withStatus(found, 'ok')).toEqual([]);
  });

  it('reports a web server that is not an edge', async () => {
    const web = createServer((_request, response) => response.end('a web server'));
    await listening(web);
    const found = await diagnosed(['--server', `127.0.0.1:${(web.address() as AddressInfo).port}`, '--token', 'admin']);
    expect(withStatus(found, 'fail')).toEqual(['edge']);
  });

  it('draws the path to the visitors, with the first problem to fix', async () => {
    const gone = await startTcpServer(() => {});
    await gone.close();
    const io = makeTestIo({ home: home.path, env: { LANG: 'de_DE.UTF-8', NO_COLOR: '1' } });
    await run(['doctor', '--server', `127.0.0.1:${gone.port}`, '--token', 'admin'], io);
    expect(io.out()).toContain('local services · ── this computer ✓ ── network ✗ ── edge · ── visitors');
    expect(io.out()).toContain(`Fix this first: connection: 127.0.0.1:${gone.port}: connection refused`);
    expect(io.out()).not.toContain('\u001b');
  });

  it('draws in ASCII when the locale allows nothing else', async () => {
    const gone = await startTcpServer(() => {});
    await gone.close();
    const io = makeTestIo({ home: home.path, env: { LC_ALL: 'C' } });
    await run(['doctor', '--server', `127.0.0.1:${gone.port}`, '--token', 'admin'], io);
    expect(io.out()).toContain('this computer ok -- network FAIL -- edge - -- visitors');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is what it is about
    expect(io.out()).toMatch(/^[\x00-\x7f]*$/);
  });
});

const listening = async (server: Server): Promise<void> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
};

/** Starts a server in front of an edge that sends a wrong time in the Date header. */
const lyingServer = async (port: number, aheadMs: number): Promise<{ readonly port: number }> => {
  const server = createServer((asked, response) => {
    const forwarded = request({
      port,
      host: '127.0.0.1',
      path: asked.url,
      method: asked.method,
      headers: asked.headers,
    });
    forwarded.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, { date: new Date(Date.now() + aheadMs).toUTCString() });
      answer.pipe(response);
    });
    asked.pipe(forwarded);
  });
  server.on('upgrade', (asked, socket, head) => {
    const upstream = connectSocket(port, '127.0.0.1');
    const fields = Object.entries(asked.headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`);
    upstream.write([`GET ${asked.url} HTTP/1.1`, ...fields, '', ''].join('\r\n'));
    upstream.write(head);
    upstream.pipe(socket).pipe(upstream);
    for (const end of [socket, upstream]) end.on('error', () => {});
    socket.on('close', () => upstream.destroy());
  });
  await listening(server);
  return { port: (server.address() as AddressInfo).port };
};
