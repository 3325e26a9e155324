import type { Socket } from 'node:net';
import { Fault } from '@tunnel/errors';
import { startTcpServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { callHttp, type HttpAnswer } from './http-call.ts';

let server: TcpServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** Calls a test server. The server runs `script` on the connection after the request has arrived. */
const callTo = async (script: (socket: Socket) => void): Promise<HttpAnswer> => {
  server = await startTcpServer((socket) => socket.once('data', () => script(socket)));
  return callHttp(
    new URL(`http://127.0.0.1:${server.port}/`),
    { method: 'POST', headers: {}, body: '{}' },
    {
      loopbackOnly: true,
      caFile: undefined,
      insecure: false,
      proxyFor: () => null,
      refuseClearText: (host) => new Fault('CLIENT_USAGE', { reason: host }),
    },
  );
};

it.each([
  ['ends without an answer', '', 'socket hang up'],
  ['ends within its answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', 'aborted'],
  [
    'begins another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    'HTTP 101',
  ],
])('a server that %s causes an error at once', async (_what, bytes, error) => {
  await expect(callTo((socket) => void socket.end(bytes))).rejects.toThrow(error);
});

it('interim responses are skipped and redirects are not followed', async () => {
  const answer = await callTo(
    (socket) =>
      void socket.end('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nno'),
  );
  expect(answer).toMatchObject({ status: 302, text: 'no' });
});
