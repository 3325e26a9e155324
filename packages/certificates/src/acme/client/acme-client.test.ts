// The ACME client with answers that no authority should give.

import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@tunnel/runtime';
import { afterEach, expect, it } from 'vitest';
import { AcmeClient, newAccountKey } from './acme-client.ts';
import { ANSWER_MAX_BYTES } from './acme-http.ts';

let server: Server | undefined;

afterEach(() => new Promise((resolve) => (server === undefined ? resolve(null) : server.close(resolve))));

const clientOf = async (answer: RequestListener): Promise<AcmeClient> => {
  const opened = createServer(answer);
  server = opened;
  await new Promise<void>((resolve) => opened.listen(0, '127.0.0.1', resolve));
  const { port } = opened.address() as AddressInfo;
  return new AcmeClient({ directory: `http://127.0.0.1:${port}/directory`, clock: systemClock });
};

const directoryAt = (host: string | undefined): string => {
  const at = (path: string): string => `http://${host ?? ''}/${path}`;
  return JSON.stringify({
    newNonce: at('nonce'),
    newAccount: at('account'),
    newOrder: at('order'),
    renewalInfo: at('info'),
  });
};

it.each([
  ['a page', '<html>'],
  ['another object', '{"newNonce": 5}'],
  ['nothing', ''],
])('an ACME directory that contains %s is rejected as a bad answer', async (_title, text) => {
  const client = await clientOf((_request, response) => response.end(text));
  await expect(client.directory()).rejects.toMatchObject({ code: 'ACME_BAD_ANSWER' });
});

it('an endless ACME answer is cut off', async () => {
  const client = await clientOf((_request, response) => response.end(' '.repeat(ANSWER_MAX_BYTES + 1)));
  await expect(client.directory()).rejects.toMatchObject({ code: 'ACME_AWAY' });
});

it("a Retry-After date is measured from the answer's own Date, independent of the local clock", async () => {
  const client = await clientOf((request, response) => {
    if (request.url === '/directory') return void response.end(directoryAt(request.headers.host));
    response.sendDate = false;
    response.setHeader('date', 'Tue, 01 Jan 2030 00:00:00 GMT');
    response.setHeader('retry-after', 'Tue, 01 Jan 2030 00:10:00 GMT');
    return void response
      .writeHead(429)
      .end('{"type":"urn:ietf:params:acme:error:rateLimited","detail":"slow\\u001b[2J down"}');
  });
  const problem = {
    name: 'AcmeProblem',
    type: 'rateLimited',
    status: 429,
    retryAfterMs: 600_000,
    detail: 'slow [2J down',
  };
  await expect(client.renewalInfo('a.b')).rejects.toMatchObject(problem);
});

it('a new ACME account without a Location is rejected as a bad answer', async () => {
  const client = await clientOf((request, response) => {
    response.setHeader('replay-nonce', 'bm9uY2U');
    response.end(request.url === '/directory' ? directoryAt(request.headers.host) : '{}');
  });
  const opened = client.openAccount(await newAccountKey(), { email: '' });
  await expect(opened).rejects.toMatchObject({
    code: 'ACME_BAD_ANSWER',
    message: expect.stringContaining('Location') as string,
  });
});

it('a refused nonce is retried five times, each time with the nonce of the last answer', async () => {
  const nonces: string[] = [];
  const client = await clientOf((request, response) => {
    response.setHeader('replay-nonce', `nonce-${nonces.length}`);
    if (request.method === 'GET') return void response.end(directoryAt(request.headers.host));
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      const { protected: head } = JSON.parse(body) as { protected: string };
      nonces.push((JSON.parse(Buffer.from(head, 'base64url').toString()) as { nonce: string }).nonce);
      response.setHeader('replay-nonce', `nonce-${nonces.length}`);
      response.writeHead(400).end('{"type":"urn:ietf:params:acme:error:badNonce"}');
    });
  });
  const opened = client.openAccount(await newAccountKey(), { email: '' });
  await expect(opened).rejects.toMatchObject({ type: 'badNonce' });
  expect(nonces).toEqual(Array.from({ length: 6 }, (_, index) => `nonce-${index}`));
});
