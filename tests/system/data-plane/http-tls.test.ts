// Tests of public HTTPS: HTTP/2 and HTTP/1.1 on the same port, the redirect from plain HTTP, and a certificate that is replaced on disk.
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { deterministicBytes, eventually, hashOf, renewedCertificate, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { WebSocket } from 'ws';
import { askHttp, echoSockets, openHttp, type PublicEndpoint, startWeb, wholeBody } from '../http-tunnels.fixture.ts';
import { askHttp2, askSecurely, dialHttp2, nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const shared = new Harness();
let stack: Stack;
/** Public endpoint of an echo service that also accepts WebSockets. */
let endpoint: PublicEndpoint;
let publicUrl: string;
beforeAll(async () => {
  stack = await shared.stack({ tls: true });
  const web = shared.use(
    await startWeb(async (request, response) => {
      const body = await wholeBody(request);
      response.setHeader('x-proto', String(request.headers['x-forwarded-proto']));
      response.end(body.length > 0 ? body : `${request.method} ${request.url} HTTP/${request.httpVersion}`);
    }),
  );
  echoSockets(web);
  const open = await openHttp(shared, stack, web.port, TLS_FLAGS);
  endpoint = open.endpoint;
  publicUrl = open.ready.public_url;
});
afterAll(() => shared.close());

describe.concurrent('the public HTTPS port', () => {
  it('is part of the public URL and serves HTTP/1.1', async () => {
    expect(publicUrl).toMatch(/^https:\/\/[a-z0-9-]+\.localhost:\d+\/?$/);
    const answer = await askSecurely(endpoint, '/one');
    expect([answer.status, answer.text, answer.headers['x-proto']]).toEqual([200, 'GET /one HTTP/1.1', 'https']);
  });

  it('serves 100 concurrent HTTP/2 requests on one connection, each complete', async ({ harness }) => {
    const session = dialHttp2(harness, endpoint);
    const body = deterministicBytes(500_000, 5);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => askHttp2(session, `/${index}`, index % 10 === 0 ? body : undefined)),
    );
    answers.forEach((answer, index) => {
      expect(answer.headers[':status']).toBe(200);
      if (index % 10 === 0) expect(hashOf(answer.body)).toBe(hashOf(body));
      else expect(answer.body.toString()).toBe(`GET /${index} HTTP/1.1`);
    });
  });

  it('carries WebSockets', async () => {
    const options = { ca: TRUST.ca, servername: 'localhost', headers: { host: endpoint.host } };
    const socket = new WebSocket(`wss://127.0.0.1:${endpoint.port}/`, options);
    await once(socket, 'open');
    socket.send('hello');
    expect(String((await once(socket, 'message'))[0])).toBe('hello');
    socket.terminate();
  });
});

describe.concurrent('the plain HTTP port beside HTTPS', () => {
  const plainPort = (at: Stack): number => Number(new URL(at.run.http_url).port);

  it('redirects visitors to HTTPS, keeping path and query', async () => {
    const plain = { host: `${nameOf(endpoint)}:${plainPort(stack)}`, port: plainPort(stack) };
    const answer = await askHttp(plain, { path: '/a?b=c', method: 'POST', body: 'x' });
    expect(answer.status).toBe(308);
    expect(answer.headers.location).toBe(`https://${endpoint.host}/a?b=c`);
  });

  it('serves visitors without a redirect if plain_http = "proxy"', async ({ harness }) => {
    const web = harness.use(await startWeb((_, response) => void response.end('in clear')));
    const both = await harness.stack({ tls: true, server: 'plain_http = "proxy"' });
    const open = await openHttp(harness, both, web.port, TLS_FLAGS);
    expect((await askHttp({ ...open.endpoint, port: plainPort(both) })).text).toBe('in clear');
  });
});

describe.concurrent('a certificate', () => {
  it('replaced on disk is used for new connections, while existing connections keep working', async ({ harness }) => {
    const folder = await harness.folder();
    const cert = join(folder, 'cert.pem');
    const key = join(folder, 'key.pem');
    const first = testCertificate();
    writeFileSync(cert, first.cert);
    writeFileSync(key, first.key);
    const renewing = await harness.stack({ tables: `[tls]\ncert_path = "${cert}"\nkey_path = "${key}"` });
    const web = harness.use(await startWeb((_, response) => void response.end('served')));
    const { endpoint: at, tunnel } = await openHttp(harness, renewing, web.port, TLS_FLAGS);
    const fingerprint = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket: TLSSocket = connectTls({ host: '127.0.0.1', port: at.port, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256);
          socket.destroy();
        });
        socket.on('error', reject);
      });
    const before = await fingerprint();
    const old: TLSSocket = connectTls({ ...TRUST, host: '127.0.0.1', port: at.port, servername: nameOf(at) });
    const request = `GET / HTTP/1.1\r\nHost: ${at.host}\r\n\r\n`;
    const answered = (): Promise<string> =>
      new Promise((resolve) => old.once('data', (piece) => resolve(String(piece))));
    old.on('error', () => {});
    old.write(request);
    expect(await answered()).toContain('200 OK');
    const renewed = renewedCertificate();
    writeFileSync(join(folder, 'new.pem'), renewed.cert);
    writeFileSync(key, renewed.key);
    copyFileSync(join(folder, 'new.pem'), cert);
    await eventually(async () => expect(await fingerprint()).not.toBe(before), { timeoutMs: 30_000, intervalMs: 200 });
    old.write(request);
    expect(await answered()).toContain('200 OK');
    old.destroy();
    expect(tunnel.events('reconnecting')).toEqual([]);
  });
});
