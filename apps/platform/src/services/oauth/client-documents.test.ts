import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadServerConfig } from '@tunnel/config/server';
import { problemOfAddress } from '@tunnel/rules/net';
import { createGuardedFetch } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ClientDocuments,
  createClientDocuments,
  OAUTH_DOCUMENT_TIMEOUT_MS,
  OAUTH_DOCUMENTS_AT_ONCE,
  OAUTH_DOCUMENTS_PER_NETWORK,
} from './client-documents.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let clock: FakeClock;
let server: Server;
let origin: string;
/** Paths of the requests received so far. */
let asked: string[];
let answer: Answer;

const documentOf = (request: IncomingMessage, change: object = {}): string =>
  JSON.stringify({ client_id: `${origin}${request.url}`, redirect_uris: ['http://127.0.0.1/cb'], ...change });
const good: Answer = (request, response) => void response.end(documentOf(request));

beforeEach(async () => {
  clock = new FakeClock();
  asked = [];
  answer = good;
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const documentsThat = ({ allowPrivate = true, lookup }: { allowPrivate?: boolean; lookup?: () => Promise<string[]> }) =>
  new ClientDocuments({
    fetch: createGuardedFetch({ problemOfAddress: (each) => problemOfAddress(each, allowPrivate), clock, lookup }),
    allowHttp: allowPrivate,
    operator: null,
    clock,
  });

const refusal = (reason: unknown) => ({ kind: 'refused', reason });

describe('a client document', () => {
  it('is fetched once for concurrent requests, and cached as long as its header says', async () => {
    const documents = documentsThat({});
    answer = (request, response) => {
      response.setHeader('cache-control', 'max-age=600');
      response.end(documentOf(request, { client_name: 'Example' }));
    };
    const url = `${origin}/client.json`;
    const host = origin.slice('http://'.length);
    const client = { id: url, host, name: 'Example', redirectUris: ['http://127.0.0.1/cb'] };
    const all = await Promise.all([1, 2, 3].map((network) => documents.find(url, `network ${network}`)));
    expect(all).toEqual(all.map(() => ({ kind: 'client', client })));
    await clock.advance(599_999);
    await documents.find(url, 'a');
    expect(asked).toEqual(['/client.json']);
    await clock.advance(1);
    await documents.find(url, 'a');
    expect(asked).toHaveLength(2);
    expect(clock.pendingTimers).toBe(0);
  });

  it('that was refused is not fetched again within a minute', async () => {
    const documents = documentsThat({});
    const url = `${origin}/client.json`;
    answer = (_, response) => void response.writeHead(404, { 'cache-control': 'max-age=86400' }).end();
    const reason = 'cannot read the client document: status 404';
    expect(await documents.find(url, 'a')).toEqual(refusal(reason));
    answer = good;
    await clock.advance(59_999);
    expect(await documents.find(url, 'a')).toEqual(refusal(reason));
    await clock.advance(1);
    expect(await documents.find(url, 'a')).toMatchObject({ kind: 'client' });
  });

  it.each<[string, Answer, unknown]>([
    [
      'redirects',
      (_, response) => void response.writeHead(302, { location: '/other' }).end(),
      'the client document is a redirect, which is not followed',
    ],
    [
      'is too long',
      (request, response) => void response.end(documentOf(request, { more: 'x'.repeat(100 * 1024) })),
      'cannot read the client document: 127.0.0.1 sent more than 65536 bytes',
    ],
    [
      'names another client',
      (request, response) => void response.end(documentOf(request, { client_id: 'https://other.example/x' })),
      'the client document has a different client_id',
    ],
    [
      'lists a script',
      (request, response) => void response.end(documentOf(request, { redirect_uris: ['javascript:alert(1)'] })),
      'the client document lists a redirect URI that is neither https nor http on localhost: javascript:alert(1)',
    ],
    ['is no JSON', (_, response) => void response.end('<html>'), 'the client document is not a JSON object'],
    [
      'breaks off',
      (_, response) => void response.writeHead(200, { 'content-length': '9' }).write('{', () => response.destroy()),
      expect.stringMatching(/^cannot read the client document: 127\.0\.0\.1 could not be reached \(/),
    ],
  ])('that %s is refused', async (_, answers, reason) => {
    answer = answers;
    expect(await documentsThat({}).find(`${origin}/client.json`, 'a')).toEqual(refusal(reason));
    expect(asked).toEqual(['/client.json']);
  });

  it('that drips is given up after five seconds, without delaying other networks', async () => {
    const documents = documentsThat({});
    answer = (request, response) => {
      if (request.url?.startsWith('/drip') === true) response.write('{');
      else good(request, response);
    };
    const perNetwork = OAUTH_DOCUMENTS_PER_NETWORK;
    const drips = Array.from({ length: perNetwork }, (_, at) => documents.find(`${origin}/drip${at}`, 'drips'));
    await eventually(() => expect(asked).toHaveLength(perNetwork));
    await expect(documents.find(`${origin}/other`, 'drips')).rejects.toMatchObject({
      code: 'OAUTH_CLIENTS_BUSY',
      values: { seconds: 5 },
    });
    expect(await documents.find(`${origin}/other`, 'another network')).toMatchObject({ kind: 'client' });
    await clock.advance(OAUTH_DOCUMENT_TIMEOUT_MS);
    const late = refusal('cannot read the client document: 127.0.0.1 did not respond within 5 s');
    expect(await Promise.all(drips)).toEqual(drips.map(() => late));
    expect(await documents.find(`${origin}/new`, 'drips')).toMatchObject({ kind: 'client' });
  });

  it('is fetched beside at most fifteen others, and requests for the same document share one fetch', async () => {
    const documents = documentsThat({});
    const waiting: (() => void)[] = [];
    answer = (request, response) => void waiting.push(() => good(request, response));
    const most = OAUTH_DOCUMENTS_AT_ONCE;
    const found = Array.from({ length: most }, (_, at) => documents.find(`${origin}/${at}`, `network ${at}`));
    await eventually(() => expect(waiting).toHaveLength(most));
    await expect(documents.find(`${origin}/more`, 'a')).rejects.toMatchObject({ code: 'OAUTH_CLIENTS_BUSY' });
    found.push(documents.find(`${origin}/0`, 'a'));
    for (const go of waiting) go();
    for (const each of found) expect(await each).toMatchObject({ kind: 'client' });
    expect(asked).toHaveLength(most);
  });
});

describe('a client ID at a private address is refused', () => {
  const never = (): Promise<string[]> => Promise.reject(new Error('asked'));

  it.each([
    ['http://app.example.com/x', never, 'the client id is not an https URL'],
    ['https://127.0.0.1/x', never, 'cannot read the client document: 127.0.0.1 is a loopback address'],
    ['https://[::ffff:a00:1]/x', never, 'cannot read the client document: [::ffff:a00:1] is a private address'],
    ['https://2130706433/x', never, 'the client id is not a normalized URL with a path'],
    ['https://localhost/x', undefined, 'cannot read the client document: localhost resolves to a loopback address'],
    [
      'https://app.example.com/x',
      () => Promise.resolve(['8.8.8.8', '10.0.0.1']),
      'cannot read the client document: app.example.com resolves to a private address',
    ],
    [
      'https://app.example.com/x',
      () => Promise.resolve(['169.254.169.254']),
      'cannot read the client document: app.example.com resolves to a cloud metadata address',
    ],
    [
      'https://app.example.com/x',
      () => Promise.resolve([]),
      'cannot read the client document: app.example.com does not resolve',
    ],
  ])('%s', async (url, lookup, reason) => {
    const documents = documentsThat({ allowPrivate: false, ...(lookup === undefined ? {} : { lookup }) });
    expect(await documents.find(url, 'a')).toEqual(refusal(reason));
  });
});

describe("a client ID that looks like the operator's", () => {
  const find = (url: string, overrides: object) =>
    createClientDocuments(loadServerConfig({ env: {}, overrides }), clock).find(url, 'a');
  const PUBLIC = {
    server: { domain: 'tunnels.example.com' },
    platform: { public_url: 'https://platform.example.com', oauth: { allow_private_clients: false } },
  };

  it.each(['https://official.tunnels.example.com/client.json', 'https://a.b.tunnels.example.com:8443/client.json'])(
    'is refused below the tunnel domain: %s',
    async (url) => {
      expect(await find(url, PUBLIC)).toEqual(
        refusal('the client id is below tunnels.example.com, where anyone can open a tunnel'),
      );
    },
  );

  it("is refused at the platform's address without a fetch", async () => {
    for (const url of ['https://platform.example.com/client.json', 'https://platform.example.com:443/client.json']) {
      expect(await find(url, PUBLIC)).toMatchObject({
        kind: 'refused',
        reason: expect.stringMatching(/^the client id is/),
      });
    }
  });

  it('is accepted on a local server, where tunnels can be clients', async () => {
    const url = `${origin.replace('127.0.0.1', 'shop.localhost')}/client.json`;
    expect(await find(url, {})).not.toMatchObject({ reason: expect.stringContaining('the client id') });
  });
});

describe('a client document on this machine', () => {
  const find = (overrides: object) =>
    createClientDocuments(loadServerConfig({ env: {}, overrides }), clock).find(`${origin}/client.json`, 'a');

  it('is fetched if the platform is local or private clients are allowed', async () => {
    expect(await find({})).toMatchObject({ kind: 'client' });
    const told = { public_url: 'https://platform.example.com', oauth: { allow_private_clients: true } };
    expect(await find({ platform: told })).toMatchObject({ kind: 'client' });
  });

  it.each([
    { platform: { host: '0.0.0.0' } },
    { platform: { public_url: 'https://platform.example.com' } },
    // Bound to loopback, but public through a trusted proxy.
    { platform: { trusted_proxies: ['127.0.0.1'] } },
    { server: { trusted_proxies: ['127.0.0.1'] } },
    { platform: { oauth: { allow_private_clients: false } } },
  ])('is not fetched with %j', async (overrides) => {
    expect(await find(overrides)).toEqual(refusal('the client id is not an https URL'));
    expect(asked).toEqual([]);
  });
});
