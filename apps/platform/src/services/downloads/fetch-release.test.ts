import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fetchRelease, listRelease } from './fetch-release.ts';
import { releaseFiles, writeRelease } from './release.fixture.ts';
import { openSource } from './release-source.ts';

let temporary: TemporaryDirectory;
let from: string;
let dir: string;
let lines: string[];
const servers: Server[] = [];
beforeEach(async () => {
  temporary = await temporaryDirectory();
  from = writeRelease(join(temporary.path, 'out'), { files: releaseFiles('1.2.3') });
  dir = join(temporary.path, 'downloads');
  lines = [];
});
afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await temporary.close();
});

const fetchTo = (source = from) =>
  fetchRelease({ from: source, dir, clock: systemClock, onProgress: (line) => lines.push(line) });
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
const flip = (path: string): void => {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(0) ^ 1);
  writeFileSync(path, bytes);
};
const serve = async (onRequest: RequestListener): Promise<string> => {
  const server = createServer(onRequest);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};
const serveFolder: RequestListener = ({ url = '' }, response) => {
  const path = join(from, url.replace(/^\/release\//, ''));
  if (existsSync(path)) response.end(readFileSync(path));
  else response.writeHead(404).end('no such file');
};

const OFFERED = [
  'SHA256SUMS',
  'THIRD_PARTY_NOTICES.txt',
  'executables/tunnel-linux-arm64',
  'executables/tunnel-linux-x64',
  'executables/tunnel-win-x64.exe',
  'manifest.json',
  'npm/hatchway-1.2.3.tgz',
  'npm/hatchway-client-1.2.3.tgz',
];

describe('downloads fetch', () => {
  it('brings the files of a folder, readable for the server, with a line for each', async () => {
    expect((await fetchTo()).version).toBe('1.2.3');
    expect(filesIn(dir)).toEqual(OFFERED);
    for (const path of OFFERED) expect(readFileSync(join(dir, path))).toEqual(readFileSync(join(from, path)));
    expect(statSync(join(dir, 'manifest.json')).mode & 0o777).toBe(0o644);
    expect(statSync(join(dir, 'npm')).mode & 0o777).toBe(0o755);
    expect(lines).toHaveLength(6);
    expect(lines[1]).toMatch(/^executables\/tunnel-linux-x64 \(0\.0 MB\): 2 of 6, checked$/);
    lines = [];
    await fetchTo();
    expect(lines.every((line) => line.endsWith('already there'))).toBe(true);
  });

  it('brings the same files from a URL, with and without a slash at the end', async () => {
    const url = await serve(serveFolder);
    await fetchTo(`${url}/release`);
    expect(filesIn(dir)).toEqual(OFFERED);
    rmSync(dir, { recursive: true });
    await fetchTo(`${url}/release/`);
    expect(filesIn(dir)).toEqual(OFFERED);
  });

  it('replaces a release, and removes files of the previous version', async () => {
    await fetchTo();
    writeFileSync(join(dir, 'note.txt'), "the operator's own");
    rmSync(from, { recursive: true });
    writeRelease(from, { version: '1.3.0', files: releaseFiles('1.3.0') });
    await fetchTo();
    expect(filesIn(dir)).toEqual([...OFFERED.map((path) => path.replace('1.2.3', '1.3.0')), 'note.txt'].sort());
    expect((await listRelease(dir)).files.every(({ state }) => state === 'ok')).toBe(true);
  });

  it.each(['executables/tunnel-linux-arm64', 'npm/hatchway-1.3.0.tgz', 'manifest.json', 'SHA256SUMS'])(
    'refuses a flipped byte in %s, and replaces nothing',
    async (path) => {
      await fetchTo();
      const before = filesIn(dir).map((one) => [one, readFileSync(join(dir, one), 'utf8')]);
      rmSync(from, { recursive: true });
      writeRelease(from, { version: '1.3.0', files: releaseFiles('1.3.0') });
      flip(join(from, path));
      await expect(fetchTo()).rejects.toMatchObject({ code: 'DOWNLOADS_FETCH' });
      expect(filesIn(dir).map((one) => [one, readFileSync(join(dir, one), 'utf8')])).toEqual(before);
    },
  );

  it.each([
    ['is too short', (content: Buffer) => content.subarray(1), 'bytes instead of'],
    ['is too long', (content: Buffer) => Buffer.concat([content, content]), 'more than'],
  ])('refuses a file that %s, from a folder and from a URL', async (_, change, reason) => {
    const path = join(from, 'npm/hatchway-1.2.3.tgz');
    writeFileSync(path, change(readFileSync(path)));
    const message = expect.stringContaining(reason) as string;
    await expect(fetchTo()).rejects.toMatchObject({ code: 'DOWNLOADS_FETCH', message });
    await expect(fetchTo(await serve(serveFolder))).rejects.toMatchObject({ code: 'DOWNLOADS_FETCH', message });
    expect(filesIn(dir)).toEqual([]);
  });

  it.each(['npm/hatchway-1.2.3.tgz', 'manifest.json'])(
    'refuses a pipe at %s, and does not wait for a writer',
    async (path) => {
      rmSync(join(from, path));
      execFileSync('mkfifo', [join(from, path)]);
      await expect(fetchTo()).rejects.toMatchObject({
        code: 'DOWNLOADS_FETCH',
        message: expect.stringContaining('is not a file') as string,
      });
    },
  );

  it('refuses a release without files for the client, which would remove those of the previous release', async () => {
    await fetchTo();
    rmSync(from, { recursive: true });
    writeRelease(from, { version: '1.3.0', files: { 'container/server-amd64.tar': 'image' } });
    await expect(fetchTo()).rejects.toThrow('lists no file for the client');
    expect(filesIn(dir)).toEqual(OFFERED);
  });

  it('refuses a folder in place of a file', async () => {
    rmSync(join(from, 'npm/hatchway-1.2.3.tgz'));
    mkdirSync(join(from, 'npm/hatchway-1.2.3.tgz'));
    await expect(fetchTo()).rejects.toThrow('is not a file');
  });

  it.each([
    ['a link in place of a folder', () => symlinkSync(temporary.path, join(dir, 'npm'))],
    ['a file in place of a folder', () => writeFileSync(join(dir, 'npm'), 'mine')],
    ['a folder in place of a file', () => mkdirSync(join(dir, 'npm/hatchway-client-1.2.3.tgz'), { recursive: true })],
  ])('refuses a downloads folder with %s, before any file is replaced', async (_, make) => {
    mkdirSync(dir);
    make();
    await expect(fetchTo()).rejects.toMatchObject({
      code: 'DOWNLOADS_DIR',
      message: expect.stringContaining('npm') as string,
    });
    expect(existsSync(join(dir, 'THIRD_PARTY_NOTICES.txt'))).toBe(false);
    expect(readdirSync(dir)).toEqual(['npm']);
  });

  it('reports a source without a release', async () => {
    const nowhere = join(temporary.path, 'nowhere');
    await expect(fetchTo(nowhere)).rejects.toThrow(`there is no file ${nowhere}/manifest.json`);
    const missing = await serve((_, response) => response.writeHead(404).end());
    await expect(fetchTo(missing)).rejects.toThrow('the server responds with status 404');
    const elsewhere = await serve((_, response) => response.writeHead(302, { location: '/x' }).end());
    await expect(fetchTo(elsewhere)).rejects.toThrow('redirect');
    const endless = await serve((_, response) => void response.write(Buffer.alloc(2 * 1024 * 1024)));
    await expect(fetchTo(endless)).rejects.toThrow('sent more than 1048576 bytes');
    const broken = await serve((request) => void request.socket.destroy());
    await expect(fetchTo(broken)).rejects.toThrow('could not be reached');
  });

  it('waits for a short list a minute or two, not as long as for an executable', async () => {
    const clock = new FakeClock();
    let hasAsked = false;
    const silent = await serve(() => {
      hasAsked = true;
    });
    const reading = openSource(silent, clock).read('manifest.json', 1024 * 1024, async () => {});
    const reason = reading.catch((error: Error) => error.message);
    await eventually(() => expect(hasAsked).toBe(true));
    await clock.advance(120_000);
    expect(await reason).toContain('did not respond within 77 s');
  });

  it.each([
    ['http://192.0.2.1/release', 'plain http is only possible for this machine'],
    ['http://example.com/release', 'plain http is only possible for this machine'],
    ['ftp://127.0.0.1/release', 'must begin with https://'],
    ['file:///etc', 'must begin with https://'],
    ['https://[', 'the URL is not valid'],
    ['https://127.0.0.1/release?token=secret', 'no query'],
    ['https://169.254.169.254/release', '169.254.169.254'],
    ['https://ann:secret@127.0.0.1/release', 'user name'],
  ])('does not fetch from %s', async (url, reason) => {
    await expect(fetchTo(url)).rejects.toMatchObject({
      code: 'DOWNLOADS_FETCH',
      message: expect.stringContaining(reason),
    });
  });

  it('reports a folder that cannot be used', async () => {
    writeFileSync(dir, 'a file');
    await expect(fetchTo()).rejects.toMatchObject({ code: 'DOWNLOADS_DIR' });
    await expect(listRelease(join(temporary.path, 'nowhere'))).rejects.toMatchObject({ code: 'DOWNLOADS_DIR' });
  });

  it('runs once at a time in a folder, and removes what a killed command left behind', async () => {
    let answer = (): void => {};
    let hasAsked = false;
    const url = await serve((request, response) => {
      answer = () => serveFolder(request, response);
      if (request.url !== '/manifest.json') answer();
      hasAsked = true;
    });
    mkdirSync(join(dir, '.incoming/npm'), { recursive: true });
    const running = fetchTo(url);
    await eventually(() => expect(hasAsked).toBe(true));
    await expect(fetchTo()).rejects.toThrow('another command is filling the folder');
    answer();
    await running;
    expect(readdirSync(dir).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});

it('downloads list finds files that are missing or were changed', async () => {
  await fetchTo();
  flip(join(dir, 'executables/tunnel-linux-x64'));
  rmSync(join(dir, 'npm/hatchway-1.2.3.tgz'));
  const { files, version } = await listRelease(dir);
  expect(version).toBe('1.2.3');
  expect(Object.fromEntries(files.map(({ name, state }) => [name, state]))).toEqual({
    'THIRD_PARTY_NOTICES.txt': 'ok',
    'tunnel-linux-x64': 'changed',
    'tunnel-linux-arm64': 'ok',
    'tunnel-win-x64.exe': 'ok',
    'hatchway-1.2.3.tgz': 'missing',
    'hatchway-client-1.2.3.tgz': 'ok',
  });
  await fetchTo();
  expect((await listRelease(dir)).files.every(({ state }) => state === 'ok')).toBe(true);
});
