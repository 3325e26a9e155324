// The routes over real sockets: ranges, caches, odd names, limits, and files that change.
import { mkdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { createLogger } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  releaseFiles,
  sha256Of,
  type WrittenRelease,
  writeRelease,
} from '../../../services/downloads/release.fixture.ts';
import { openGate } from '../../server/gate.fixture.ts';
import { HttpServer } from '../../server/http-server.ts';
import { createPlatformApp } from '../../server/platform-app.ts';
import { addDownloadRoutes } from './download-routes.ts';
import { DOWNLOADS_AT_ONCE } from './download-slots.ts';
import { DOWNLOAD_IDLE_MS, DOWNLOAD_MAX_MS } from './file-stream.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const PUBLIC_URL = 'https://tunnels.example.com';
const EXECUTABLE = 'executables/tunnel-linux-x64';
const LINK = '/downloads/tunnel-linux-x64';
/** More than the buffers of a connection hold. */
const LARGE = Buffer.alloc(16 * 1024 * 1024, 'tunnel');

let temporary: TemporaryDirectory;
let dir: string;
let clock: FakeClock;
let server: HttpServer;
const sockets: Socket[] = [];

beforeEach(async () => {
  temporary = await temporaryDirectory();
  dir = join(temporary.path, 'release');
  mkdirSync(dir);
  clock = new FakeClock();
  server = await startServer(dir);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.stop();
  await temporary.close();
});

const startServer = async (downloads_dir: string): Promise<HttpServer> => {
  const settings = { trusted_proxies: [], public_url: `${PUBLIC_URL}/`, host: '127.0.0.1', downloads_dir };
  // Downloads need no database.
  const app = createPlatformApp({ logger, settings, databaseReady: () => false });
  addDownloadRoutes(app, { clock, logger, version: '1.2.3', settings });
  const made = new HttpServer({ host: '127.0.0.1', port: 0, app, gate: openGate(), clock, logger });
  await made.start();
  return made;
};

type Headers = Record<string, string>;
const open = (path: string, headers: Headers = {}, method = 'GET'): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { port } = server.address;
    const to = { host: '127.0.0.1', port, agent: false };
    const call = httpRequest({ ...to, path, method, headers: { host: 'localhost', ...headers } });
    call.on('response', resolve).on('error', reject).end();
    call.on('socket', (socket) => sockets.push(socket));
  });
const ask = async (path: string, headers: Headers = {}, method = 'GET') => {
  const response = await open(path, headers, method);
  const body = await buffer(response);
  return { status: response.statusCode, headers: response.headers, body, text: body.toString() };
};
/** Only the head of the response is read. */
const stall = (path = LINK): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(server.address.port, '127.0.0.1');
    sockets.push(socket);
    socket.once('readable', () => resolve(socket));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  });
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.resume().once('close', () => resolve()));
const writeLarge = (release: WrittenRelease = {}): void =>
  void writeRelease(dir, { ...release, files: { ...releaseFiles('1.2.3'), [EXECUTABLE]: LARGE } });
const codeOf = (text: string): unknown => (JSON.parse(text) as { code: unknown }).code;

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

describe('/install', () => {
  it('is a page for browsers, and a script for everything else', async () => {
    writeRelease(dir);
    const page = await ask('/install', BROWSER);
    expect([page.status, page.headers['content-type'], page.headers.vary]).toEqual([
      200,
      'text/html; charset=UTF-8',
      'accept',
    ]);
    expect(page.headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none'/,
    );
    expect(page.text).not.toMatch(/<script|javascript:/);
    for (const line of [
      `curl -fsSL ${PUBLIC_URL}/install | sh`,
      `irm ${PUBLIC_URL}/install.ps1 | iex`,
      `npm install -g ${PUBLIC_URL}/downloads/hatchway-1.2.3.tgz`,
      `tunnel login --platform ${PUBLIC_URL}`,
    ]) {
      expect(page.text).toContain(`<pre>${line}</pre>`);
    }
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }, { accept: '' }] as Headers[]) {
      const { status, text, headers: answered } = await ask('/install', headers);
      expect([status, answered['content-type'], answered['x-tunnel-client-version']]).toEqual([
        ...[200, 'text/plain; charset=utf-8', '1.2.3'],
      ]);
      expect(text).toMatch(/^#!\/bin\/sh\n/);
    }
    expect((await ask('/install.sh', BROWSER)).text).toMatch(/^#!\/bin\/sh\n/);
    expect((await ask('/install.ps1', BROWSER)).text).toContain("$platform = 'https://tunnels.example.com'\n");
  });

  it('has the URL of the configuration, whatever host the request names', async () => {
    writeRelease(dir);
    const { text } = await ask('/install', { host: 'localhost:9', 'x-forwarded-host': 'evil.example' });
    expect(text).toContain(`platform='${PUBLIC_URL}'\n`);
    expect(text).not.toMatch(/localhost|evil/);
  });

  it('shows only what the release has', async () => {
    writeRelease(dir, { files: { 'npm/hatchway-1.2.3.tgz': 'x' } });
    const packages = await ask('/install', BROWSER);
    expect(packages.text).not.toMatch(/curl|irm/);
    expect(packages.headers['x-tunnel-client-version']).toBeUndefined();
    writeRelease(dir, { files: { [EXECUTABLE]: 'x' } });
    expect((await ask('/install', BROWSER)).text).not.toMatch(/npm|irm/);
  });

  it.each([
    ['without downloads_dir', () => startServer(''), 'has put no files here'],
    ['with an empty folder', () => startServer(dir), 'has put no files here'],
    [
      'with files of another version',
      async () => startServer(writeRelease(dir, { version: '1.3.0' })),
      'have version 1.3.0, but the server has version 1.2.3',
    ],
  ])('%s: page and scripts say so', async (_, start, text) => {
    await server.stop();
    server = await start();
    const page = await ask('/install', BROWSER);
    expect(page.text).toContain(text);
    expect(page.text).toContain('tunnel-server downloads fetch');
    expect(page.headers['x-tunnel-client-version']).toBeUndefined();
    expect((await ask('/install')).text).toMatch(new RegExp(`${text}.*tunnel-server downloads fetch.*\nexit 1\n$`));
    expect((await ask('/install.ps1')).text).toMatch(new RegExp(`^throw '.*${text}`));
  });

  it.each(['/install', '/install.sh', '/install.ps1', LINK, '/downloads/SHA256SUMS'])(
    '%s takes GET and HEAD, and only the own host',
    async (path) => {
      writeRelease(dir);
      const posted = await ask(path, {}, 'POST');
      expect([posted.status, posted.headers.allow]).toEqual([405, 'GET, HEAD']);
      const head = await ask(path, {}, 'HEAD');
      expect([head.status, head.text]).toEqual([200, '']);
      const strange = await ask(path, { host: 'rebound.example' });
      expect([strange.status, codeOf(strange.text)]).toEqual([421, 'API_WRONG_HOST']);
    },
  );
});

describe('/downloads', () => {
  it('serves a file with its length, an ETag and a cache that asks again', async () => {
    writeLarge();
    const { status, headers, body } = await ask(LINK);
    expect([status, sha256Of(body)]).toEqual([200, sha256Of(LARGE)]);
    expect(headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': String(LARGE.length),
      'cache-control': 'public, no-cache',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
    });
    const head = await ask(LINK, {}, 'HEAD');
    expect(head.headers).toMatchObject({ 'content-length': String(LARGE.length), etag: headers.etag });
    const known = await ask(LINK, { 'if-none-match': `"other", ${headers.etag}` });
    expect([known.status, known.headers.etag, known.text]).toEqual([304, headers.etag, '']);
  });

  it('serves ranges, so that a download can be continued', async () => {
    writeLarge();
    const part = await ask(LINK, { range: 'bytes=3-1000002' });
    expect([part.status, part.headers['content-range']]).toEqual([206, `bytes 3-1000002/${LARGE.length}`]);
    expect(part.body.equals(LARGE.subarray(3, 1_000_003))).toBe(true);
    const { etag = '' } = part.headers;
    const rest = await ask(LINK, { range: `bytes=${LARGE.length - 5}-`, 'if-range': etag });
    expect([rest.status, rest.body]).toEqual([206, LARGE.subarray(-5)]);
    expect((await ask(LINK, { range: 'bytes=0-1', 'if-range': '"old"' })).status).toBe(200);
    const outside = await ask(LINK, { range: `bytes=${LARGE.length}-` });
    expect([outside.status, codeOf(outside.text)]).toEqual([416, 'DOWNLOAD_RANGE']);
    expect(outside.headers['content-range']).toBe(`bytes */${LARGE.length}`);
  });

  it('serves the checksums by name', async () => {
    writeRelease(dir);
    const { headers, text } = await ask('/downloads/SHA256SUMS');
    expect(text).toContain(`${sha256Of(releaseFiles('1.2.3')[EXECUTABLE] ?? '')}  tunnel-linux-x64\n`);
    expect(text).not.toContain('/');
    expect((await ask('/downloads/SHA256SUMS', { 'if-none-match': headers.etag ?? '' })).status).toBe(304);
  });

  it.each([
    ...['/downloads', '/downloads/', '/downloads/manifest.json', '/downloads/server-amd64.tar', '/downloads/nothing'],
    ...['/downloads/executables/tunnel-linux-x64', '/downloads/executables%2ftunnel-linux-x64', '/downloads/%2e%2e'],
    ...['/downloads/..%2f..%2f..%2fetc%2fpasswd', '/downloads/%00', '/downloads/%ff', '/downloads/__proto__'],
    ...['/downloads/tunnel-linux-x64%00', '/downloads/tunnel-linux-x64/', '/downloads/TUNNEL-LINUX-X64'],
    ...['/downloads/../../../../etc/passwd', '/downloads/constructor', '/downloads/%', '/downloads/.incoming'],
    `/downloads/${'x'.repeat(5000)}`,
  ])('has nothing at %s', async (path) => {
    writeRelease(dir);
    writeFileSync(join(temporary.path, 'secret'), 'secret');
    const { status, text } = await ask(path);
    expect([status, codeOf(text)]).toEqual([404, 'API_NOT_FOUND']);
  });

  it('reports a file that is missing or has another size, and serves it again once repaired', async () => {
    writeRelease(dir);
    truncateSync(join(dir, EXECUTABLE), 3);
    const short = await ask(LINK);
    expect([short.status, codeOf(short.text), short.headers['retry-after']]).toEqual([
      503,
      'DOWNLOAD_UNAVAILABLE',
      '1',
    ]);
    expect(short.text).not.toContain(dir);
    rmSync(join(dir, EXECUTABLE));
    expect((await ask(LINK)).status).toBe(503);
    writeRelease(dir);
    expect((await ask(LINK)).status).toBe(200);
  });
});

describe('a file that changes during a download', () => {
  const rest = async (change: () => void): Promise<string> => {
    writeLarge();
    const response = await open(LINK);
    await new Promise((resolve) => response.once('readable', resolve));
    change();
    return buffer(response).then(
      (body) => sha256Of(body),
      (error: Error) => error.message,
    );
  };

  it('and becomes shorter: the connection closes before the end', async () => {
    expect(await rest(() => truncateSync(join(dir, EXECUTABLE), 1024 * 1024))).toBe('aborted');
    expect((await ask(LINK)).status).toBe(503);
  });

  it('and is written to: the connection closes before the end', async () => {
    expect(await rest(() => utimesSync(join(dir, EXECUTABLE), 1, 1))).toBe('aborted');
    expect((await ask(LINK)).status).toBe(200);
  });

  it('and is replaced or deleted: the caller gets the old file', async () => {
    const path = join(dir, EXECUTABLE);
    expect(await rest(() => rmSync(path))).toBe(sha256Of(LARGE));
  });
});

it('callers that leave before the response begins give their slots back at once', async () => {
  writeLarge();
  for (let left = 0; left < DOWNLOADS_AT_ONCE; left += 1) {
    const socket = connect(server.address.port, '127.0.0.1');
    await new Promise<void>((resolve) =>
      socket.write(`GET ${LINK} HTTP/1.1\r\nHost: localhost\r\n\r\n`, () => resolve()),
    );
    socket.destroy();
  }
  await eventually(async () => expect((await ask(LINK, { range: 'bytes=0-0' })).status).toBe(206));
  // Nothing waits for the time limits of those downloads.
  await eventually(() => expect(clock.pendingTimers).toBe(0));
});

describe('callers that read slowly', () => {
  it('take at most 32 slots, and slow down nothing else', async () => {
    writeLarge();
    const slow = await Promise.all(Array.from({ length: DOWNLOADS_AT_ONCE }, () => stall()));
    const refused = await ask(LINK);
    expect([refused.status, codeOf(refused.text), refused.headers['retry-after']]).toEqual([
      503,
      'DOWNLOADS_BUSY',
      '10',
    ]);
    const startedAt = performance.now();
    expect((await ask('/install')).status).toBe(200);
    expect((await ask('/downloads/SHA256SUMS')).status).toBe(200);
    expect((await ask(LINK, {}, 'HEAD')).status).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(2000);
    slow[0]?.destroy();
    await eventually(async () => expect((await ask(LINK, { range: 'bytes=0-0' })).status).toBe(206));
  });

  it('lose their slots after a time without progress', async () => {
    writeLarge();
    const slow = await Promise.all(Array.from({ length: DOWNLOADS_AT_ONCE }, () => stall()));
    await clock.advance(DOWNLOAD_IDLE_MS - 1);
    expect((await ask(LINK)).status).toBe(503);
    // Until the buffers of a connection are full, there is progress without a reader.
    await eventually(async () => {
      await clock.advance(DOWNLOAD_IDLE_MS);
      expect(clock.pendingTimers).toBe(0);
    });
    expect((await ask(LINK, { range: 'bytes=0-0' })).status).toBe(206);
    // The bytes that are on their way already still arrive.
    await Promise.all(slow.slice(0, 2).map(closed));
  });

  it('lose their slots after the total time, whatever the progress', async () => {
    writeLarge();
    const response = await open(LINK);
    const ended = new Promise((resolve) => response.once('close', resolve));
    let bytes = 0;
    response.on('data', (piece: Buffer) => {
      bytes += piece.length;
      response.pause();
    });
    response.on('error', () => {});
    for (let passed = 0; passed < DOWNLOAD_MAX_MS; passed += DOWNLOAD_IDLE_MS / 2) {
      response.resume();
      await eventually(() => expect(response.isPaused() || response.destroyed).toBe(true));
      await clock.advance(DOWNLOAD_IDLE_MS / 2);
    }
    response.resume();
    await ended;
    expect(bytes).toBeLessThan(LARGE.length);
    expect(clock.pendingTimers).toBe(0);
  });
});
