import { createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import { systemClock } from '@tunnel/runtime';
import { eventually, RecordingReader, temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { allowStaticReads } from '../native/node-internals.ts';
import { connectSocket, connectTlsSocket } from './connect-socket.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const listen = async (server: Server): Promise<number> => {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
};

const secure = (onConnection: (socket: TLSSocket) => void = () => {}): Promise<number> =>
  listen(createServer({ ...testCertificate(), allowHalfOpen: true }, onConnection));

const dial = (port: number, options: { host?: string; verify?: boolean; timeoutMs?: number } = {}) =>
  connectTlsSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock, verify: false, ...options });

describe('connectTlsSocket', () => {
  it('carries bytes both ways and passes a half-close on', async () => {
    const port = await secure((socket) => {
      // The greeting is sent before the client has a reader, and must not be lost.
      socket.write('welcome ');
      socket.on('data', (chunk: Buffer) => socket.write(chunk));
      socket.on('end', () => socket.end(' bye'));
    });
    const end = await dial(port);
    const reader = new RecordingReader(end);
    end.write(Buffer.from('hello'), 0, 5, false);
    end.end();
    await eventually(() => expect(reader.ended).toBe(true));
    expect(reader.bytes).toBe('welcome hello bye'.length);
  });

  it('sends a host name in SNI, but never an IP address', async () => {
    const names: unknown[] = [];
    const port = await secure((socket) => names.push((socket as { servername?: unknown }).servername));
    const ends = [await dial(port, { host: 'localhost' }), await dial(port)];
    await eventually(() => expect(names).toEqual(['localhost', false]));
    for (const end of ends) end.reset({ code: 'cancelled', text: '' });
  });

  it('refuses an untrusted certificate when verification is on', async () => {
    await expect(dial(await secure(), { verify: true })).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });

  it('tells a closed port, a silent server and a server without TLS apart', async () => {
    const closed = createTcpServer();
    const gone = await listen(closed);
    await new Promise((resolve) => closed.close(resolve));
    servers.length = 0;
    await expect(dial(gone)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const silent = await listen(createTcpServer((socket) => socket.on('error', () => {})));
    await expect(dial(silent, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    const plain = await listen(
      createTcpServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad\r\n\r\n')),
    );
    await expect(dial(plain)).rejects.toMatchObject({ code: expect.stringMatching(/^(EPROTO|ERR_SSL_)/) as string });
  });
});

describe('a Unix socket connection', () => {
  it.each([true, false])('carries bytes both ways with half-close and reset; static reads: %s', async (isStatic) => {
    allowStaticReads(isStatic);
    const directory = await temporaryDirectory();
    const path = join(directory.path, 'echo.sock');
    let cut = 0;
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      socket.on('close', () => {
        cut += 1;
      });
      socket.pipe(socket);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const end = await connectSocket({ path, timeoutMs: 5000, clock: systemClock });
    const reader = new RecordingReader(end);
    end.write(Buffer.alloc(1_000_000, 7), 0, 1_000_000, false);
    end.end();
    await eventually(() => expect([reader.bytes, reader.ended]).toEqual([1_000_000, true]));
    const second = await connectSocket({ path, timeoutMs: 5000, clock: systemClock });
    const before = cut;
    second.read(new RecordingReader(second));
    // A Unix socket cannot be reset; reset() must close the socket without an error.
    second.reset({ code: 'cancelled', text: '' });
    await eventually(() => expect(cut).toBeGreaterThan(before));
    await expect(connectSocket({ path: `${path}-gone`, timeoutMs: 5000, clock: systemClock })).rejects.toMatchObject({
      code: 'ENOENT',
    });
    allowStaticReads(true);
    await directory.close();
  });
});
