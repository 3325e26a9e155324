import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Check } from '@tunnel/client';
import {
  FastClock,
  startTcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo } from '../io/io.fixture.ts';

let home: TemporaryDirectory;
const closing: (() => unknown)[] = [];

// The tests of this file run concurrently, because they mostly wait for time limits.
beforeAll(async () => {
  home = await temporaryDirectory();
});
afterAll(async () => {
  for (const close of closing.splice(0)) await close();
  await home.close();
});

/** Runs 12 times faster than real time: the doctor's limit of 5 s per step leaves almost half a second for the real work. */
const clock = new FastClock(12);

/**
 * Runs `tunnel doctor` and returns the failed checks with their details. The time limit is the command's limit, with a margin for a busy
 * machine.
 */
const failuresOf = async (...flags: string[]): Promise<Pick<Check, 'id' | 'detail'>[]> => {
  const io = makeTestIo({ home: home.path, clock });
  const since = clock.monotonic();
  expect(await run(['doctor', '--json', '--token', 'admin', ...flags], io)).toBe(1);
  expect(clock.monotonic() - since).toBeLessThan(21_000);
  const { checks } = JSON.parse(io.out()) as { checks: Check[] };
  return checks.filter(({ status }) => status === 'fail').map(({ id, detail }) => ({ id, detail }));
};

/** Starts a server that accepts connections and sends only `first`, which is empty by default. */
const silentServer = async (first = ''): Promise<string> => {
  const server = await startTcpServer((socket) => {
    socket.resume();
    socket.write(first);
  });
  closing.push(() => server.close());
  return `127.0.0.1:${server.port}`;
};

describe.concurrent('tunnel doctor, with a silent server', () => {
  it.each([
    ['nothing', ''],
    ['half an answer', 'HTTP/1.1 200 OK\r\nDate:'],
  ])('reports the edge check when the server sends %s', async (_what, first) => {
    const server = await silentServer(first);
    const [failure, ...others] = await failuresOf('--server', server);
    expect(failure).toEqual({ id: 'edge', detail: `cannot reach ${server}: no response within 5 s` });
    expect(others).toEqual([]);
  });

  it('reports the TLS check when the handshake does not finish', async () => {
    const server = await silentServer();
    expect(await failuresOf('--server', server, '--tls')).toEqual([
      { id: 'tls', detail: `cannot reach ${server}: no response within 5 s` },
    ]);
  });

  it('reports the edge check when the server is silent after the TLS handshake', async () => {
    const server = createTlsServer(testCertificate(), (socket) => void socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    expect(await failuresOf('--server', `127.0.0.1:${port}`, '--tls', '--insecure')).toEqual([
      { id: 'edge', detail: `cannot reach 127.0.0.1:${port}: no response within 5 s` },
    ]);
  });

  it('reports the key check when the server never answers the key', async () => {
    const server = createServer((_request, response) => response.end());
    server.on('upgrade', (request, socket) => {
      const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash('sha1').update(key).digest('base64');
      socket.on('error', () => {}).resume();
      socket.write(
        `HTTP/1.1 101 -\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    expect(await failuresOf('--server', `127.0.0.1:${port}`)).toEqual([
      { id: 'key', detail: `cannot reach 127.0.0.1:${port}: no response within 5 s` },
    ]);
  });

  it('reports the proxy check when the proxy is silent, without its password', async () => {
    const proxy = await silentServer();
    expect(await failuresOf('--server', '127.0.0.1:1', '--proxy', `http://me:password@${proxy}`)).toEqual([
      { id: 'proxy', detail: `cannot reach the proxy http://${proxy}: no response within 5 s` },
    ]);
  });

  it('exits with 130 on Ctrl-C and says that it stopped before all checks were done', async () => {
    const io = makeTestIo({ home: home.path });
    const server = await startTcpServer((socket) => {
      socket.resume();
      io.signal('SIGINT');
    });
    closing.push(() => server.close());
    expect(await run(['doctor', '--server', `127.0.0.1:${server.port}`, '--token', 'admin'], io)).toBe(130);
    expect(io.out()).toContain('Stopped before all checks were done.');
    expect(io.out()).toContain('skipped: stopped');
    expect(io.out()).not.toMatch(/no time|is well/);
  });
});
