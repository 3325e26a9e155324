// Tests of a service that disappears during a response. Visitors get a reset, never an orderly end, so that half of a response never
// looks complete.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openHttp, type PublicEndpoint } from '../http-tunnels.fixture.ts';
import { nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { Harness } from '../in-process.fixture.ts';

const TIMES = 60;
const ANSWERS = {
  chunked: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
  length: 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello',
  close: 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello',
};

/** Starts a service that sends the response named in the path, and closes or resets the connection right after the last byte. */
const startService = async (harness: Harness): Promise<number> => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const [, kind = '', how = ''] = /^GET \/(\w+)\/(\w+) /.exec(data.toString('latin1')) ?? [];
      socket.write(ANSWERS[kind as keyof typeof ANSWERS]);
      if (how === 'reset') socket.resetAndDestroy();
      else socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.use({ close: async () => void server.close() });
  return (server.address() as AddressInfo).port;
};

/** Sends a request, and resolves with a summary of the received data and of the way the connection ended. */
const endOf = (socket: Socket, request: string): Promise<string> =>
  new Promise((resolve) => {
    let text = '';
    let end = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('end', () => (end ||= 'end'));
    socket.on('error', ({ code = '' }: NodeJS.ErrnoException) => (end ||= code));
    socket.on('close', () => resolve(`${text.includes('hello') ? 'half' : text.slice(9, 12)}, ${end}`));
    socket.write(request);
  });

const shared = new Harness();
/**
 * Public HTTP endpoint and public HTTPS endpoint. Their edges run as separate processes, so that visitors keep reading while an edge
 * waits.
 */
let plain: PublicEndpoint;
let secure: PublicEndpoint;
beforeAll(async () => {
  const port = await startService(shared);
  const http = await shared.stack({ programs: true });
  const https = await shared.stack({ programs: true, tls: true });
  plain = (await openHttp(shared, http, port)).endpoint;
  secure = (await openHttp(shared, https, port, TLS_FLAGS)).endpoint;
});
afterAll(() => shared.close());

describe.concurrent('a response that is cut off resets the visitor connection', () => {
  it.concurrent.each([
    ['1.0', 'close', 'reset'],
    ['1.0', 'chunked', 'end'],
    ['1.0', 'length', 'reset'],
    ['1.1', 'close', 'reset'],
    ['1.1', 'chunked', 'end'],
    ['1.1', 'chunked', 'reset'],
    ['1.1', 'length', 'end'],
  ] as const)('over HTTP/%s, with a body framed by %s and a service that ends by %s', async (version, kind, how) => {
    const request = (host: string): string => `GET /${kind}/${how} HTTP/${version}\r\nHost: ${host}\r\n\r\n`;
    const visits = Array.from({ length: TIMES }, () =>
      endOf(connect({ port: plain.port, host: '127.0.0.1' }), request(plain.host)),
    );
    const ends = await Promise.all(visits);
    expect(new Set(ends)).toEqual(new Set(['half, ECONNRESET']));
    const secured = Array.from({ length: TIMES / 3 }, () =>
      endOf(
        connectTls({ ...TRUST, port: secure.port, host: '127.0.0.1', servername: nameOf(secure) }),
        request(secure.host),
      ),
    );
    expect(new Set(await Promise.all(secured))).toEqual(new Set(['half, ECONNRESET']));
  });
});
