import { describe, expect, it } from 'vitest';
import {
  allowsPrivateClients,
  documentLifeMs,
  isDocumentUrl,
  judgeClientDocument,
  plainName,
  problemOfDocumentUrl,
} from './client-document.rules.ts';

const ID = 'https://app.example.com/oauth/client.json';

describe('a client ID URL', () => {
  it.each([ID, 'https://a.example/x', 'https://a.example:8443/x/?v=1', 'https://a.example//x', 'https://[::1]/x'])(
    'can be %s, which equals its normalized form',
    (id) => {
      expect([isDocumentUrl(id), problemOfDocumentUrl(id, false)]).toEqual([true, null]);
      expect(new URL(id).href).toBe(id);
    },
  );

  it.each([
    ['http://a.example/x', 'is not an https URL'],
    ['HTTPS://a.example/x', 'is not an https URL'],
    ['https://a.example', 'is not a normalized URL with a path'],
    ['https://a.example/', 'has no path'],
    ['https://a.example/?x', 'has no path'],
    ['https://a.example/x#y', 'has a fragment'],
    ['https://user@a.example/x', 'contains a user name'],
    ['https://user:password@a.example/x', 'contains a user name'],
    ['https://a.example/../x', 'has a dot segment in its path'],
    ['https://a.example/x/.', 'has a dot segment in its path'],
    ['https://a.example/x/%2e%2E/y', 'has a dot segment in its path'],
    ['https://A.example/x', 'is not a normalized URL with a path'],
    ['https://a.example\\x', 'is not a normalized URL with a path'],
    ['https://a.example/x y', 'is not a normalized URL with a path'],
    ['https://a.example/x\t', 'is not a normalized URL with a path'],
    ['https://ä.example/x', 'is not a normalized URL with a path'],
    ['https://a.example/%zz', 'is not a normalized URL with a path'],
    ['https://a.example:65536/x', 'is not a normalized URL with a path'],
    ['https://a.example./x', 'is not a normalized URL with a path'],
    ['https://0x7f.1/x', 'is not a normalized URL with a path'],
    ['https://2130706433/x', 'is not a normalized URL with a path'],
    ['https://[::ffff:127.0.0.1]/x', 'is not a normalized URL with a path'],
    ['https://[0::1]/x', 'is not a normalized URL with a path'],
    [`https://a.example/${'x'.repeat(2000)}`, 'is too long'],
  ])('is rejected: %j', (id, problem) => {
    expect(problemOfDocumentUrl(id, false)).toBe(problem);
  });

  it('can be http if private clients are allowed', () => {
    expect(problemOfDocumentUrl('http://127.0.0.1:4000/client.json', true)).toBeNull();
    expect(problemOfDocumentUrl('http://127.0.0.1:4000/', true)).toBe('has no path');
    expect(isDocumentUrl('client_4fK2mQ9xVbT7RsLpZ0aE')).toBe(false);
  });
});

describe('the client document', () => {
  const GOOD = { client_id: ID, client_name: 'Example', redirect_uris: ['https://app.example.com/cb'] };
  const judge = (change: object) => judgeClientDocument(ID, JSON.stringify({ ...GOOD, ...change }));

  it('defines a client, with the host as name if the name is unusable', () => {
    const client = { id: ID, host: 'app.example.com', name: 'Example', redirectUris: ['https://app.example.com/cb'] };
    expect(judge({ token_endpoint_auth_method: 'none', other: 1 })).toEqual({ kind: 'client', client });
    expect(judge({ client_name: 7 })).toMatchObject({ client: { name: 'app.example.com' } });
    expect(judge({ client_name: ' \u202e ' })).toMatchObject({ client: { name: 'app.example.com' } });
  });

  it.each([
    [{ client_id: `${ID}/` }, 'the client document has a different client_id'],
    [{ client_id: undefined }, 'the client document has a different client_id'],
    [{ client_id: [ID] }, 'the client document has a different client_id'],
    [{ redirect_uris: undefined }, 'the client document has no redirect_uris'],
    [{ redirect_uris: [] }, 'the client document has no redirect_uris'],
    [{ redirect_uris: 'https://app.example.com/cb' }, 'the client document has no redirect_uris'],
    [{ redirect_uris: [7] }, 'the client document lists a redirect URI that is not a string'],
    [
      { redirect_uris: Array.from({ length: 101 }, () => 'https://a.example/') },
      'the client document lists more than 100 redirect_uris',
    ],
    [
      { redirect_uris: ['https://app.example.com/cb', 'javascript:alert(1)'] },
      'the client document lists a redirect URI that is neither https nor http on localhost: javascript:alert(1)',
    ],
    [
      // Control characters of a client must not change the text of the error page.
      { redirect_uris: ['x:\u202eevil\n\u0000\u200blla'] },
      'the client document lists a redirect URI that is neither https nor http on localhost: x: evil lla',
    ],
    [
      { token_endpoint_auth_method: 'client_secret_basic' },
      'the client uses client authentication, but only public clients are supported',
    ],
  ])('is rejected with %j', (change, reason) => {
    expect(judge(change)).toEqual({ kind: 'refused', reason });
  });

  it.each(['', 'null', '[]', '"text"', '{', '<html>'])('is rejected if it is %j', (text) => {
    expect(judgeClientDocument(ID, text)).toEqual({
      kind: 'refused',
      reason: 'the client document is not a JSON object',
    });
  });
});

it.each([
  ['Example\u202eelpmaxE\u0000\u200b\n\nApp ', 'Example elpmaxE App'],
  ['\u{1f600}'.repeat(200), '\u{1f600}'.repeat(100)],
  ['\ud83d alone', 'alone'],
  // Combining marks are drawn over each other, and could cover the host in the line above.
  [`x${'\u0301'.repeat(90)}y`, 'x\u0301\u0301\u0301y'],
])('a client name is reduced to one readable line: %j', (name, plain) => {
  expect(plainName(name)).toBe(plain);
});

it.each([
  [undefined, 60_000],
  ['max-age=5', 60_000],
  ['public, max-age=600', 600_000],
  ['s-maxage=9, Max-Age="600"', 600_000],
  ['max-age=999999999', 86_400_000],
  ['max-age=99999999999999999999', 86_400_000],
  ['no-store, max-age=600', 60_000],
  ['no-cache', 60_000],
  ['max-age=x', 60_000],
  ['max-age=-1', 60_000],
])('a client document with cache-control %j is cached for %i ms', (header, ms) => {
  expect(documentLifeMs(header)).toBe(ms);
});

describe('private OAuth clients', () => {
  const home = { host: '127.0.0.1', publicHost: 'localhost', trustedProxies: [] };

  it.each([
    ['auto', home, true],
    ['auto', { ...home, host: '::1', publicHost: '[::1]' }, true],
    ['auto', { ...home, host: '0.0.0.0' }, false],
    ['auto', { ...home, publicHost: 'platform.example.com' }, false],
    ['auto', { ...home, trustedProxies: ['127.0.0.1'] }, false],
    [true, { ...home, host: '0.0.0.0' }, true],
    [false, home, false],
  ] as const)('with allow_private_clients %j and the network %j are allowed: %s', (setting, around, allowed) => {
    expect(allowsPrivateClients(setting, around)).toBe(allowed);
  });
});
