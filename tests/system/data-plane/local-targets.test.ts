// Tests of tunnel targets other than a port: a folder served by the client, and a Unix socket.
import { mkdirSync, readdirSync, readlinkSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { deterministicBytes, eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf, type OpenTunnel, readUntil, sendRaw } from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { sendAndReadAll } from '../visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;

beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

/** 20 MB, enough data for stream windows to grow. */
const BIG = deterministicBytes(20_000_000, 3);

/** Runs `tunnel …ARGS --json` at the shared stack, and waits until the tunnel is ready. */
const open = async (harness: Harness, args: readonly string[], home?: string): Promise<OpenTunnel> => {
  const where = ['--json', '--server', stack.control, '--token-file', stack.tokenFile];
  const tunnel = await harness.run([...args, ...where], home === undefined ? {} : { home });
  const ready = await tunnel.ready();
  return { tunnel, ready, endpoint: endpointOf(ready.public_url) };
};

/** Creates a folder with public files, a hidden file, and a link to a secret folder beside it. */
const makeSite = async (harness: Harness): Promise<string> => {
  const above = await harness.folder();
  const site = join(above, 'site');
  mkdirSync(join(site, 'sub'), { recursive: true });
  mkdirSync(join(above, 'outside'));
  writeFileSync(join(site, 'index.html'), '<h1>home</h1>');
  writeFileSync(join(site, 'sub/x.txt'), 'inside');
  writeFileSync(join(site, '.env'), 'SECRET');
  writeFileSync(join(above, 'outside/x.txt'), 'SECRET');
  symlinkSync('../outside', join(site, 'out'));
  return site;
};

/** Counts the open files below the folder in the test process, where the client runs. */
const handlesInto = (folder: string): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
    } catch {
      return false;
    }
  }).length;

describe('`tunnel files`', () => {
  it('serves a 20 MB file completely, by range, and with 304, HEAD and 405', async ({ harness }) => {
    const site = await makeSite(harness);
    writeFileSync(join(site, 'big.bin'), BIG);
    const { endpoint } = await open(harness, ['files', site]);
    const whole = await askHttp(endpoint, { path: '/big.bin' });
    expect([whole.status, whole.body.equals(BIG)]).toEqual([200, true]);
    const rest = await askHttp(endpoint, { path: '/big.bin', headers: { range: 'bytes=8000000-' } });
    expect([rest.status, rest.body.equals(BIG.subarray(8_000_000))]).toEqual([206, true]);
    const headers = { 'if-none-match': String(whole.headers.etag) };
    expect((await askHttp(endpoint, { path: '/big.bin', headers })).status).toBe(304);
    const head = await askHttp(endpoint, { path: '/big.bin', method: 'HEAD' });
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, String(BIG.length), 0]);
    const post = await askHttp(endpoint, { path: '/', method: 'POST', body: Buffer.alloc(1_000_000) });
    expect([post.status, post.headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  it('serves no hidden or outside file, even after a folder was replaced by a link', async ({ harness }) => {
    const site = await makeSite(harness);
    const { endpoint } = await open(harness, ['files', site, '--listing', '--spa']);
    expect((await askHttp(endpoint, { path: '/sub/x.txt' })).text).toBe('inside');
    const raw = async (path: string): Promise<string> => {
      const socket = await sendRaw(endpoint, `GET ${path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n`);
      const heard = await readUntil(socket, /\r\n\r\n/);
      socket.destroy();
      return heard;
    };
    for (const path of [
      '/.env',
      '/out/x.txt',
      '/out/',
      '/%2e%2e/outside/x.txt',
      '/../outside/x.txt',
      '/%00',
      '/a%2f..',
    ]) {
      const heard = await raw(path);
      expect(heard).toMatch(/^HTTP\/1\.1 40[04] /);
      expect(heard).not.toContain('SECRET');
    }
    renameSync(join(site, 'sub'), join(site, 'was-sub'));
    symlinkSync('../outside', join(site, 'sub'));
    expect((await askHttp(endpoint, { path: '/sub/x.txt' })).status).toBe(404);
    const list = await askHttp(endpoint, { path: '/was-sub/' });
    expect(list.text).toContain('href="./x.txt"');
    expect((await askHttp(endpoint, { path: '/users/7', headers: { accept: 'text/html' } })).text).toContain('home');
  });

  it('reports requests as events, and the inspector lists and replays requests', async ({ harness }) => {
    const site = await makeSite(harness);
    const { tunnel, endpoint, ready } = await open(harness, ['files', site, '--name', 'pages']);
    expect(ready).toMatchObject({ name: 'pages', protocol: 'http', local: `files:${site}` });
    await askHttp(endpoint, { path: '/sub/x.txt' });
    await eventually(() =>
      expect(tunnel.events('request')).toContainEqual(expect.objectContaining({ path: '/sub/x.txt', status: 200 })),
    );
    const inspector = endpointOf(String(ready['inspect_url']));
    const listed = async (): Promise<{ id: string }[]> => {
      const { text } = await askHttp(inspector, { path: '/api/requests' });
      return (JSON.parse(text) as { requests: { id: string }[] }).requests;
    };
    const id = (await listed())[0]?.id;
    const page = (await askHttp(inspector)).text;
    const token = /name="inspector-token" content="([^"]+)"/.exec(page)?.[1] ?? '';
    const headers = { origin: `http://${inspector.host}`, 'x-inspector-token': token };
    const again = await askHttp(inspector, { method: 'POST', path: `/api/requests/${id}/replay`, headers });
    expect(again.status).toBe(202);
    await eventually(async () => expect((await listed())[0]).toMatchObject({ replay_of: id, status: 200 }));
  });

  it('keeps no file open after its visitor has left', async ({ harness }) => {
    const site = await makeSite(harness);
    // The file is larger than all buffers, and no visitor reads any byte.
    writeFileSync(join(site, 'huge.bin'), '');
    truncateSync(join(site, 'huge.bin'), 100_000_000);
    const { endpoint } = await open(harness, ['files', site, '--no-inspect']);
    const request = 'GET /huge.bin HTTP/1.1\r\nHost: {host}\r\n\r\n';
    const sockets = await Promise.all(Array.from({ length: 30 }, () => sendRaw(endpoint, request)));
    await eventually(() => expect(handlesInto(site)).toBe(30));
    for (const socket of sockets) socket.destroy();
    await eventually(() => expect(handlesInto(site)).toBe(0));
    expect((await askHttp(endpoint)).text).toBe('<h1>home</h1>');
  });

  it('is refused with 2 for a missing folder, for a file, and with a health check', async ({ harness }) => {
    const site = await makeSite(harness);
    const trials: [string[], RegExp][] = [
      [[join(site, 'nowhere')], /the folder .*nowhere does not exist/],
      [[join(site, 'index.html')], /is not a folder/],
      [[site, '--health', 'tcp'], /unknown option '--health'/],
    ];
    for (const [args, words] of trials) {
      const tunnel = await harness.run(['files', ...args, '--server', stack.control, '--token-file', stack.tokenFile]);
      expect(await tunnel.exitCode()).toBe(2);
      expect(tunnel.stderr.join('\n')).toMatch(words);
    }
  });

  it('of a missing folder gives a 502 and an error event, and serves the folder once it exists', async ({
    harness,
  }) => {
    const home = await harness.folder();
    const config = join(home, 'config.yml');
    writeFileSync(config, 'tunnels:\n  site: { proto: http, files: { dir: ./dist } }\n');
    const { tunnel, endpoint } = await open(harness, ['start', '--config', config], home);
    expect((await askHttp(endpoint)).status).toBe(502);
    await eventually(() =>
      expect(tunnel.events('error')).toContainEqual(expect.objectContaining({ code: 'CLIENT_LOCAL_FILES' })),
    );
    mkdirSync(join(home, 'dist'));
    writeFileSync(join(home, 'dist/index.html'), 'built');
    expect((await askHttp(endpoint)).text).toBe('built');
  });
});

describe('a Unix socket as local target', () => {
  it('serves the visitors of an HTTP tunnel, with health checks', async ({ harness }) => {
    const path = join(await harness.folder(), 'app.sock');
    const web = createServer((request, response) => response.end(`${request.headers.host} ${request.url}`));
    await new Promise<void>((resolve) => web.listen(path, resolve));
    harness.use({ close: async () => void web.close() });
    const flags = ['--health', 'http:/healthz', '--health-interval', '0.2', '--health-max-failed', '1'];
    const { tunnel, endpoint, ready } = await open(harness, [
      ...['http', `unix:${path}`, '--host-header', 'rewrite'],
      ...flags,
    ]);
    expect(ready).toMatchObject({ name: 'http-app', local: `unix:${path}` });
    expect((await askHttp(endpoint, { path: '/a' })).text).toBe('localhost /a');
    await eventually(() => expect(tunnel.events('health').at(-1)).toMatchObject({ healthy: true }));
    web.closeAllConnections();
    await new Promise<void>((resolve) => web.close(() => resolve()));
    await eventually(() => expect(tunnel.events('health').at(-1)).toMatchObject({ healthy: false }));
    await askHttp(endpoint);
    await eventually(() =>
      expect(tunnel.events('error').at(-1)).toMatchObject({
        code: 'CLIENT_LOCAL_DIAL',
        message: expect.stringContaining(path),
      }),
    );
  });

  it('serves the visitors of a TCP tunnel, with half-close', async ({ harness }) => {
    const path = join(await harness.folder(), 'echo.sock');
    const echo = createTcpServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => echo.listen(path, resolve));
    harness.use({ close: async () => void echo.close() });
    const { ready } = await open(harness, ['tcp', `unix:${path}`]);
    const bytes = BIG.subarray(0, 5_000_000);
    expect((await sendAndReadAll(ready.assigned_port, bytes)).equals(bytes)).toBe(true);
  });

  it('is refused with 2 if combined with a local host, or if its path is empty or too long', async ({ harness }) => {
    for (const args of [['unix:a.sock', '--local-host', 'b'], [`unix:/tmp/${'x'.repeat(120)}`], ['unix:']]) {
      const tunnel = await harness.run(['http', ...args, '--server', stack.control, '--token-file', stack.tokenFile]);
      expect(await tunnel.exitCode()).toBe(2);
    }
  });
});
