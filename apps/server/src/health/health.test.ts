// The health check against real sockets: run.json of a killed server, parts that hang, and parts that answer byte by byte.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDataDir } from '../data-dir/data-dir.ts';
import { checkHealth } from './health.ts';

let folder: TemporaryDirectory;
const servers: Server[] = [];
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await folder.close();
});

/** Locks the data directory like a running server, and returns the server's pid. */
const serverPid = (): number => {
  lockDataDir(folder.path);
  return process.pid;
};

const listen = async (answer: (socket: Socket) => void): Promise<string> => {
  const server = createServer((socket) => {
    socket.on('error', () => {}).unref();
    answer(socket);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const good = (socket: Socket): void => void socket.once('data', () => socket.end(OK));

const check = (timeoutMs = 20_000) =>
  checkHealth({ dataDir: folder.path, hosts: { edge: 'localhost', platform: 'localhost' }, timeoutMs });
const writeRun = (run: object): void => writeFileSync(join(folder.path, 'run.json'), JSON.stringify(run));

describe('the health check', () => {
  it('is ok if every part responds with 200, and names a part with another status', async () => {
    const pid = serverPid();
    writeRun({ pid, platform_url: await listen(good), api_url: await listen(good) });
    expect(await check()).toEqual({ isHealthy: true, line: 'ok' });
    const bad = await listen((socket) => void socket.once('data', () => socket.end(OK.replace('200', '503'))));
    writeRun({ pid, platform_url: await listen(good), api_url: bad });
    expect(await check()).toEqual({ isHealthy: false, line: `edge: status 503 (${bad}/api/status)` });
  });

  it.each([
    ['accepts and says nothing', () => {}],
    ['sends its head byte by byte', (socket: Socket) => void setInterval(() => socket.write('H'), 20).unref()],
    ['sends only half of a head', (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\nx: ')],
  ])('ends within its time limit when a part %s', async (_name, answer) => {
    writeRun({ pid: serverPid(), platform_url: null, api_url: await listen(answer) });
    const { isHealthy, line } = await check(300);
    expect([isHealthy, line]).toEqual([false, expect.stringMatching(/^edge: (no response within 0\.3 s|HPE_)/)]);
  });

  it('names a part that closes the connection or listens no more', async () => {
    const closing = await listen((socket) => void socket.destroy());
    writeRun({ pid: serverPid(), platform_url: null, api_url: closing });
    expect((await check()).line).toMatch(/^edge: ECONNRESET/);
    servers.at(-1)?.close();
    await expect.poll(async () => (await check()).line).toMatch(/^edge: ECONNREFUSED/);
  });

  it('reports no running server for the run.json of a killed server, even if its pid is in use again', async () => {
    const url = await listen(good);
    const { pid: dead } = spawnSync(process.execPath, ['-e', '0', 'tunnel-server']);
    writeRun({ pid: dead, platform_url: null, api_url: url });
    await expect(check()).rejects.toThrow('no server is running');
    writeRun({ pid: process.pid, platform_url: null, api_url: url });
    await expect(check()).rejects.toThrow('no server is running');
  });

  it.each(['', '{', '[]', '7', 'null', '{"pid":"1"}', '{"pid":1.5}', ' '.repeat(70_000)])(
    'reports no running server for a run.json that is not complete: %j',
    async (text) => {
      writeFileSync(join(folder.path, 'run.json'), text);
      await expect(check()).rejects.toThrow('no server is running');
    },
  );

  it('does not wait for a pipe in the place of run.json', async () => {
    expect(spawnSync('mkfifo', [join(folder.path, 'run.json')]).status).toBe(0);
    await expect(check()).rejects.toThrow('no server is running');
  });

  it('is not ok for a run.json without the address of any part', async () => {
    writeRun({ pid: serverPid() });
    expect(await check()).toMatchObject({ isHealthy: false, line: 'the server runs neither an edge nor a platform' });
  });
});
