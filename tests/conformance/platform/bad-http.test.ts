// Malformed HTTP requests: every response is still an error with a code and an id, and the server keeps running.
import { connect } from 'node:net';
import { apiError } from '@tunnel/contract';
import { describe, expect, it } from 'vitest';
import { onSharedPlatform, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const JSON_POST = 'POST /auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';

const BYTES: Readonly<Record<string, readonly [number, string]>> = {
  'no HTTP': [400, 'hello\r\n\r\n'],
  'TLS on a plain port': [400, '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\r\n\r\n'],
  'no host': [400, 'GET /keys HTTP/1.1\r\n\r\n'],
  'a host that is none': [400, 'GET /keys HTTP/1.1\r\nhost: a b<>\r\n\r\n'],
  'an empty host': [400, 'GET /keys HTTP/1.1\r\nhost:\r\n\r\n'],
  'the host of another': [421, 'GET /keys HTTP/1.1\r\nhost: evil.example\r\n\r\n'],
  'a target at the host of another': [421, 'GET http://evil.example/keys HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  'a header of 20 KB': [400, `GET /keys HTTP/1.1\r\nhost: localhost\r\na: ${'a'.repeat(20_000)}\r\n\r\n`],
  'a path of 20 KB': [400, `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`],
  'a path that is not ASCII': [400, 'GET /kéys HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  'a method that is none': [400, 'BREW /keys HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  'a method that nobody has': [405, 'PROPFIND /keys HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  TRACE: [405, 'TRACE /keys HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  'OPTIONS of everything': [400, 'OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  'an unknown expectation': [404, 'GET /nothing HTTP/1.1\r\nhost: localhost\r\nexpect: tea\r\n\r\n'],
  'two lengths': [400, `${JSON_POST}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  'a length that is none': [400, `${JSON_POST}content-length: x\r\n\r\n{}`],
  'a broken chunk': [400, `${JSON_POST}transfer-encoding: chunked\r\n\r\nzz\r\n`],
  'a space in a header name': [400, 'GET /keys HTTP/1.1\r\nhost: localhost\r\nbad header: x\r\n\r\n'],
};

const harness = onSharedPlatform(new PlatformHarness());

/** Returns the response, until the connection ends or the error body is complete. */
const answerTo = (bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(harness.url);
    const socket = connect({ host: hostname, port: Number(port) });
    let heard = '';
    socket.on('data', (piece) => {
      heard += piece.toString();
      if (/"request_id":"[^"]+"\}/.test(heard)) socket.destroy();
    });
    socket.on('close', () => resolve(heard));
    socket.on('error', reject);
    socket.write(bytes, 'latin1');
  });

describe(row('Errors', 1, 'bytes that are no good request'), () => {
  it.each(Object.entries(BYTES))('%s', async (_, [status, bytes]) => {
    const answer = await answerTo(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const id = /\r\nx-request-id: (\S+)\r\n/i.exec(answer)?.[1];
    const { request_id } = apiError.strict().parse(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)));
    expect(request_id).toBe(id);
    expect((await harness.get('/health')).status).toBe(200);
  });
});

it('an unfinished request body does not block other requests, neither while the connection is open nor after it closes', async () => {
  const { hostname, port } = new URL(harness.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  socket.write(`${JSON_POST}content-length: 50\r\n\r\n{`);
  expect((await harness.get('/health')).status).toBe(200);
  socket.destroy();
  expect((await harness.get('/health')).status).toBe(200);
});
