import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readlink, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { deterministicBytes, eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askFolder, connectTo } from './ask-folder.fixture.ts';
import { FILES_HEAD_MAX_BYTES } from './file-server.ts';
import { FILES_LISTED_MAX } from './listing.ts';
import { ServedFolder } from './served-folder.ts';

const HTML = { accept: 'text/html,*/*;q=0.8' };
const BIG = deterministicBytes(3_000_000, 7);

let directory: TemporaryDirectory;
let dir: string;
let folder: ServedFolder;

beforeEach(async () => {
  directory = await temporaryDirectory();
  dir = join(directory.path, 'site');
  await mkdir(join(dir, 'docs'), { recursive: true });
  await mkdir(join(dir, 'plain'));
  await mkdir(join(dir, '.git'));
  await mkdir(join(directory.path, 'outside'));
  await writeFile(join(directory.path, 'outside/x.txt'), 'SECRET');
  await writeFile(join(directory.path, 'outside/index.html'), 'SECRET');
  await writeFile(join(dir, 'index.html'), '<h1>home</h1>');
  await writeFile(join(dir, 'docs/index.html'), '<h1>docs</h1>');
  await writeFile(join(dir, 'plain/x.txt'), 'plain');
  await writeFile(join(dir, '.env'), 'SECRET');
  await writeFile(join(dir, '.git/config'), 'SECRET');
  await writeFile(join(dir, 'big.bin'), BIG);
  folder = new ServedFolder({ dir });
});
afterEach(() => directory.close());

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  askFolder(folder, path, { headers, method });

const statusOf = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
  (await ask(path, headers)).status;

/** Counts the open file descriptors of the process in the test's folder. */
const openHandles = async (): Promise<number> => {
  const links = await readdir('/proc/self/fd');
  const paths = await Promise.all(links.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
  return paths.filter((path) => path.startsWith(directory.path)).length;
};

describe('a served file', () => {
  it('is sent whole with caching headers, and conditional requests get a 304', async () => {
    const { status, headers, body } = await ask('/big.bin');
    expect(status).toBe(200);
    expect(body.equals(BIG)).toBe(true);
    expect(headers).toMatchObject({ 'accept-ranges': 'bytes', 'content-type': 'application/octet-stream' });
    expect(await statusOf('/big.bin', { 'if-none-match': String(headers.etag) })).toBe(304);
    expect(await statusOf('/big.bin', { 'if-modified-since': String(headers['last-modified']) })).toBe(304);
    expect(await statusOf('/big.bin', { 'if-match': '"another"' })).toBe(412);
  });

  it('is sent in part for a Range header, and gets a 416 for a range past the end', async () => {
    const part = await ask('/big.bin', { range: 'bytes=1000000-1999999' });
    expect([part.status, part.headers['content-range']]).toEqual([206, 'bytes 1000000-1999999/3000000']);
    expect(part.body.equals(BIG.subarray(1_000_000, 2_000_000))).toBe(true);
    const past = await ask('/big.bin', { range: 'bytes=3000000-' });
    expect([past.status, past.headers['content-range']]).toEqual([416, 'bytes */3000000']);
  });

  it('is sent whole when a range asks for more of its end than exists', async () => {
    const { status, headers, text } = await ask('/plain/x.txt', { range: 'bytes=-100' });
    expect([status, headers['content-range'], text]).toEqual([206, 'bytes 0-4/5', 'plain']);
    await writeFile(join(dir, 'empty'), '');
    expect(await statusOf('/empty', { range: 'bytes=-100' })).toBe(416);
  });

  it('gets the same headers for HEAD as for GET, without a body', async () => {
    const { status, headers, body } = await ask('/big.bin', {}, 'HEAD');
    expect([status, headers['content-length'], body.length]).toEqual([200, '3000000', 0]);
  });

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('rejects %s with a 405', async (method) => {
    const { status, headers } = await ask('/index.html', {}, method);
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  it('rejects an unknown method with 405, a malformed request with 400 and a long head with 431', async () => {
    const answerTo = async (text: string): Promise<string> => {
      const connection = await connectTo(folder);
      connection.write(text);
      const pieces: Buffer[] = [];
      for await (const piece of connection) pieces.push(piece as Buffer);
      return Buffer.concat(pieces).toString();
    };
    const refused = await answerTo('FOO /index.html HTTP/1.1\r\nhost: a\r\n\r\n');
    expect(refused).toMatch(/^HTTP\/1.1 405 Method Not Allowed\r\n/);
    expect(refused).toContain('\r\nAllow: GET, HEAD\r\n');
    expect(await answerTo('GET / HTTP/9.9\r\n\r\n')).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    const long = `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(FILES_HEAD_MAX_BYTES)}\r\n\r\n`;
    expect(await answerTo(long)).toMatch(/^HTTP\/1.1 431 /);
  });

  it.each(['we"ird\' <b>&%41.txt', 'new\nline.txt', 'ünï☃.txt', '100%', 'a?b#c', 'back\\slash', ' '])(
    'can be named %j',
    async (name) => {
      await writeFile(join(dir, name), name);
      expect((await ask(`/${encodeURIComponent(name)}`)).text).toBe(name);
    },
  );

  it('of zero bytes gets a 200 with content length 0', async () => {
    await writeFile(join(dir, 'empty'), '');
    expect(await ask('/empty')).toMatchObject({ status: 200, text: '', headers: { 'content-length': '0' } });
  });

  it('that shrinks during the transfer cuts the connection instead of padding the body', async () => {
    const connection = await connectTo(folder);
    connection.write('GET /big.bin HTTP/1.1\r\nhost: a\r\n\r\n');
    const ended = new Promise<Error | null>((resolve) => connection.once('error', resolve));
    await new Promise((resolve) => connection.once('readable', resolve));
    await truncate(join(dir, 'big.bin'), 1000);
    connection.resume();
    expect(await ended).not.toBeNull();
    await eventually(async () => expect(await openHandles()).toBe(0));
  });
});

describe('a path that must not be served gets a 404', () => {
  it.each([
    ...['/../outside/x.txt', '/%2e%2e/outside/x.txt', '/plain/..%2f..%2foutside/x.txt', '/%00', '/index.html%00'],
    ...[
      '/.env',
      '/.git/config',
      '/%2egit/config',
      '/.',
      '/..',
      '//index.html',
      '/plain//x.txt',
      '/index.html/',
      '/nope',
    ],
  ])('%s', async (path) => {
    const { status, text } = await ask(path);
    expect([status, text]).toEqual([404, '404 Not Found\n']);
  });

  it('symlinks to the outside or to hidden files, while symlinks inside the folder work', async () => {
    await symlink('../outside/x.txt', join(dir, 'file-out'));
    await symlink('../outside', join(dir, 'folder-out'));
    await symlink('.git/config', join(dir, 'hidden'));
    await symlink('loop', join(dir, 'loop'));
    await symlink('plain/x.txt', join(dir, 'inside'));
    await symlink('docs', join(dir, 'manual'));
    for (const path of ['/file-out', '/folder-out/x.txt', '/folder-out/', '/hidden', '/loop']) {
      expect(await statusOf(path)).toBe(404);
    }
    expect((await ask('/inside')).text).toBe('plain');
    expect((await ask('/manual/')).text).toBe('<h1>docs</h1>');
  });

  it('a named pipe, which could block the client', async () => {
    execFileSync('mkfifo', [join(dir, 'pipe')]);
    expect(await statusOf('/pipe')).toBe(404);
  });

  it('a folder that was replaced by a symlink, even if it is the served folder itself', async () => {
    await rename(join(dir, 'plain'), join(dir, 'was-plain'));
    await symlink('../outside', join(dir, 'plain'));
    expect(await statusOf('/plain/x.txt')).toBe(404);
    await rename(dir, join(directory.path, 'moved'));
    await symlink('outside', dir);
    expect(await statusOf('/x.txt')).toBe(404);
    expect(await statusOf('/')).toBe(404);
  });

  it('a deleted folder, which is served again once recreated', async () => {
    await rm(dir, { recursive: true });
    expect(await statusOf('/')).toBe(404);
    await mkdir(dir);
    await writeFile(join(dir, 'index.html'), 'built again');
    expect((await ask('/')).text).toBe('built again');
  });

  it('a folder that does not exist yet fails the dial, and is served once it exists', async () => {
    folder = new ServedFolder({ dir: join(directory.path, 'later') });
    await expect(folder.dial()).rejects.toThrow(/ENOENT/);
    await mkdir(join(directory.path, 'later'));
    await writeFile(join(directory.path, 'later/index.html'), 'there');
    expect((await ask('/')).text).toBe('there');
  });
});

describe('a served subfolder', () => {
  it('shows its index page, and redirects to the URL with a trailing slash', async () => {
    expect((await ask('/docs/')).text).toBe('<h1>docs</h1>');
    const { status, headers } = await ask('/docs?page=2');
    expect([status, headers.location]).toEqual([301, '/docs/?page=2']);
  });

  it('without an index page gets a 404', async () => {
    expect([await statusOf('/plain'), await statusOf('/plain/')]).toEqual([404, 404]);
  });

  it('with a listing links only entries that can be requested, with escaped names', async () => {
    folder = new ServedFolder({ dir, listing: true });
    await writeFile(join(dir, 'plain/<img src=x onerror=alert(1)>"\'&.html'), '');
    await writeFile(join(dir, 'plain/.hidden'), '');
    await writeFile(join(dir, 'plain/javascript:alert(1)'), '');
    await mkdir(join(dir, 'plain/zoo'));
    await symlink('../../outside/x.txt', join(dir, 'plain/leads-out'));
    await symlink('x.txt', join(dir, 'plain/stays'));
    execFileSync('mkfifo', [join(dir, 'plain/pipe')]);
    const { status, text, headers } = await ask('/plain/');
    expect(status).toBe(200);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    const links = [...text.matchAll(/href="([^"]*)"/g)].map(([, href]) => href).filter((href) => href !== 'data:,');
    expect(links).toEqual([
      '../',
      './zoo/',
      "./%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%22'%26.html",
      './javascript%3Aalert(1)',
      './stays',
      './x.txt',
    ]);
    expect(text).not.toMatch(/<img|<script|leads-out|\.hidden|SECRET/);
    for (const link of links.slice(2)) expect(await statusOf(`/plain/${link?.slice(2)}`)).toBe(200);
    expect((await ask('/plain')).status).toBe(301);
    expect((await ask('/docs/')).text).toBe('<h1>docs</h1>');
  });

  it('with too many entries lists the first ones and says that the list is incomplete', async () => {
    folder = new ServedFolder({ dir, listing: true });
    const names = Array.from({ length: FILES_LISTED_MAX + 5 }, (_, i) => `f${i}`);
    await Promise.all(names.map((name) => writeFile(join(dir, 'plain', name), '')));
    const { text } = await ask('/plain/');
    expect(text.match(/<time /g)).toHaveLength(FILES_LISTED_MAX);
    expect(text).toContain('entries are listed');
  });
});

describe('the page of a single-page app', () => {
  beforeEach(() => {
    folder = new ServedFolder({ dir, spa: true });
  });

  it('is sent for missing pages only, not for missing assets or API calls', async () => {
    expect(await ask('/users/7', HTML)).toMatchObject({
      status: 200,
      text: '<h1>home</h1>',
      headers: { vary: 'Accept' },
    });
    expect((await ask('/plain/', HTML)).text).toBe('<h1>home</h1>');
    expect((await ask('/plain/x.txt', HTML)).text).toBe('plain');
    expect(await statusOf('/api/users')).toBe(404);
    expect(await statusOf('/app.js', { accept: '*/*' })).toBe(404);
    expect((await ask('/users/7', HTML, 'POST')).status).toBe(405);
  });

  it('is not sent for hidden files or paths outside the folder', async () => {
    await symlink('../outside/x.txt', join(dir, 'file-out'));
    for (const path of ['/.env', '/%2e%2e/x', '/file-out', '/%00']) expect(await statusOf(path, HTML)).toBe(404);
  });
});

describe('a connection to the served folder', () => {
  const GET = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;

  const readAll = async (connection: Duplex): Promise<string> => {
    let text = '';
    for await (const piece of connection) text += (piece as Buffer).toString('latin1');
    return text;
  };

  it('answers pipelined requests in order with one file open at a time', async () => {
    const connection = await connectTo(folder);
    connection.write(GET('/big.bin').repeat(8) + GET('/plain/x.txt'));
    let bytes = 0;
    connection.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    await eventually(() => expect(bytes).toBeGreaterThan(BIG.length));
    expect(await openHandles()).toBeLessThanOrEqual(1);
    await eventually(() => expect(bytes).toBeGreaterThan(8 * BIG.length));
    connection.end();
    await eventually(async () => expect([connection.destroyed, await openHandles()]).toEqual([true, 0]));
  });

  it('sends the complete response to a visitor that has half-closed', async () => {
    const connection = await connectTo(folder);
    connection.end(GET('/big.bin'));
    expect((await readAll(connection)).length).toBeGreaterThan(BIG.length);
  });

  it('skips the body of a rejected request and answers the next request', async () => {
    const connection = await connectTo(folder);
    connection.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n`);
    connection.write(Buffer.alloc(1_000_000));
    connection.end(GET('/plain/x.txt'));
    expect(await readAll(connection)).toMatch(/^HTTP\/1\.1 405 [^]*HTTP\/1\.1 200 OK[^]*plain$/);
  });

  it('holds one open file per unread response and closes it when the visitor leaves', async () => {
    const connections = await Promise.all(Array.from({ length: 20 }, () => connectTo(folder)));
    for (const connection of connections) connection.write(GET('/big.bin').repeat(3));
    await eventually(async () => expect(await openHandles()).toBe(20));
    for (const connection of connections) connection.destroy();
    await eventually(async () => expect(await openHandles()).toBe(0));
  });

  it('closes a file that was opened for a visitor that has left meanwhile', async () => {
    for (let turns = 0; turns < 6; turns += 1) {
      const connection = await connectTo(folder);
      connection.write(GET('/big.bin'));
      for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      connection.destroy();
    }
    await eventually(async () => expect(await openHandles()).toBe(0));
  });

  it('without valid HTTP gets an error response and is closed', async () => {
    const connection = await connectTo(folder);
    connection.write('\0\x01\x02 no request\r\n\r\n');
    connection.write(GET('/plain/x.txt'));
    expect(await readAll(connection)).toMatch(/^HTTP\/1\.1 4\d\d [^]*Connection: close\r\n\r\n4\d\d [\w ]*\n$/);
    connection.end();
    await eventually(() => expect(connection.destroyed).toBe(true));
  });

  it('with invalid bytes behind a request is cut while the response is under way', async () => {
    const connection = await connectTo(folder);
    connection.on('error', () => {});
    connection.write(`${GET('/big.bin')}\0\x01\x02 no request\r\n\r\n`);
    await eventually(() => expect(connection.destroyed).toBe(true));
    await eventually(async () => expect(await openHandles()).toBe(0));
  });
});
