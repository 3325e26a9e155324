import { randomCases, seededRandom } from '@tunnel/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HeadProblem } from './field-reader.ts';
import type { HeaderField } from './fields.ts';
import { requestHeadByText, responseHeadByText, trailersByText } from './heads-as-text.fixture.ts';
import { HTTP1_BOUNDS } from './limits.ts';
import { mutated, validMessage } from './message-generator.fixture.ts';
import { parseRequestHead, type RequestHead, requestHeadFromParts } from './request-head.ts';
import { type ResponseHead, responseHeadFromParts } from './response-head.ts';
import {
  endToEndFields,
  requestFieldsFor,
  requestHeadFor,
  responseHeadFor,
  type ServiceRequestOptions,
} from './rewrite.ts';
import { trailersFromParts } from './trailers.ts';

const RUNS = { numRuns: 1000 };

const NAMES = [
  ...['x-a', 'X-B', 'accept', 'cookie', 'set-cookie', 'te', 'expect', 'content-type', 'grpc-status', 'trailer'],
  ...['content-length', 'transfer-encoding', 'connection', 'upgrade', 'keep-alive', 'host', 'http2-settings'],
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x_forwarded_for', 'proxy-connection', '__proto__'],
  ...['', 'a b', 'x:', 'x\r\ny', 'h\xf6st'],
];
const VALUES = [
  ...[
    '',
    'y',
    ' y',
    'y\t',
    ' \t ',
    'a b',
    '\xa0',
    '0',
    '5',
    '05',
    '+5',
    '5 ',
    '5\t',
    '\t5',
    '5, 5',
    '18446744073709551621',
  ],
  ...['trailers', ' Trailers ', 'gzip', 'chunked', 'chunked\t', 'gzip, chunked', 'close', 'keep-alive, x-a', 'upgrade'],
  ...[
    '100-continue',
    'websocket',
    'h2c, websocket',
    'https',
    'http, https',
    '1.1.1.1',
    '1.1.1.1, 2.2.2.2',
    'web.localhost',
  ],
  ...['a\r\nHost: evil', 'a\nb', 'a\0', '\u{20ac}', 'x'.repeat(500)],
];

/** Random names and values, mostly valid; sometimes so many or so long that a limit is reached. */
const fieldsBy = fc.array(fc.tuple(weighted(NAMES, 5), weighted(VALUES, 5)), { maxLength: 8 }).chain((fields) =>
  fc.oneof(
    { weight: 20, arbitrary: fc.constant(fields) },
    { weight: 1, arbitrary: fc.integer({ min: 118, max: 130 }).map((count) => [...fields, ...repeated(count, 'y')]) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 28, max: 34 }).map((count) => [...fields, ...repeated(count, 'y'.repeat(1000))]),
    },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 79, max: 83 }).map((count) => [...fields, ...repeated(count, 'y'.repeat(92))]),
    },
  ),
);

const repeated = (count: number, value: string): [string, string][] =>
  Array.from({ length: count }, (_, nth) => [`x-${nth}`, value]);

/** Picks from the list; its last entries, which are invalid everywhere, are picked rarely. */
function weighted(list: readonly string[], oddOnes: number): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 30, arbitrary: fc.constantFrom(...list.slice(0, -oddOnes)) },
    { weight: 1, arbitrary: fc.constantFrom(...list.slice(-oddOnes)) },
  );
}

const shown = (head: RequestHead | ResponseHead | HeadProblem) =>
  head.kind === 'problem' ? head : { ...head, headers: shownFields(head.headers) };

const shownFields = (fields: readonly HeaderField[]) =>
  fields.map(({ role, name, lower, nameLength, value, line }) => ({ role, name, lower, nameLength, value, line }));

const optionsBy: fc.Arbitrary<ServiceRequestOptions> = fc.record({
  visitorAddress: fc.constantFrom('203.0.113.7', '::1', '1.1.1.1\nX: y'),
  forwardedFor: fc.constantFrom(undefined, undefined, '6.6.6.6, 7.7.7.7'),
  proto: fc.constantFrom('http', 'https'),
  hostHeader: fc.constantFrom<ServiceRequestOptions['hostHeader'][]>('keep', { rewrite: 'localhost:3000' }),
});

const partsBy = fc.record({
  method: weighted(['GET', 'POST', 'HEAD', 'OPTIONS', 'PROPFIND', 'CONNECT', '', 'GE T', 'GET / HTTP/1.1\r\nx: y'], 3),
  path: weighted(['/', '/a?b', '//x', '*', 'http://evil/', '', '/ x', '/#', '/\r\nx: y'], 5),
  authority: weighted(
    ['web.localhost', 'WEB.localhost:8000', '[::1]:80', '', 'a b', 'a@b', 'web.localhost:99999', 'a\r\nx: y'],
    5,
  ),
  headers: fieldsBy,
  hasBody: fc.boolean(),
});

describe('a head built from HTTP/2 parts equals the head parsed from its text', () => {
  it('for requests, including the head that the service gets', () => {
    const kinds = { request: 0, problem: 0 };
    fc.assert(
      fc.property(partsBy, optionsBy, (parts, options) => {
        const head = requestHeadFromParts(parts);
        const byText = requestHeadByText(parts);
        expect(shown(head)).toEqual(shown(byText));
        kinds[head.kind] += 1;
        if (head.kind === 'problem' || byText.kind === 'problem') return;
        expect(requestHeadFor(head, options)).toBe(requestHeadFor(byText, options));
        expect(shownFields(requestFieldsFor(head, options).fields)).toEqual(
          shownFields(requestFieldsFor(byText, options).fields),
        );
      }),
      RUNS,
    );
    // Both outcomes must occur often enough for the comparison to be meaningful.
    expect(Math.min(kinds.request, kinds.problem)).toBeGreaterThan(randomCases(RUNS.numRuns) / 20);
  });

  it('for responses, including the head that the visitor gets', () => {
    const kinds = { response: 0, problem: 0 };
    const statusBy = weighted(
      ['200', '404', '204', '304', '103', '101', '426', '599', '', '20', '2000', 'abc', '099', '600'],
      6,
    );
    const requestBy = fc.record({
      method: fc.constantFrom('GET', 'HEAD'),
      upgrade: fc.constantFrom(null, null, 'websocket'),
    });
    const visitorBy = fc.record({ visitorVersion: fc.constantFrom('1.0', '1.1'), keepAlive: fc.boolean() });
    fc.assert(
      fc.property(
        statusBy,
        fieldsBy,
        fc.boolean(),
        requestBy,
        visitorBy,
        (status, fields, endsHere, request, visitor) => {
          const head = responseHeadFromParts({ status, fields, endsHere }, request);
          const byText = responseHeadByText({ status, fields, endsHere }, request);
          expect(shown(head)).toEqual(shown(byText));
          kinds[head.kind] += 1;
          if (head.kind === 'problem' || byText.kind === 'problem') return;
          expect(responseHeadFor(head, visitor)).toEqual(responseHeadFor(byText, visitor));
          expect(shownFields(endToEndFields(head))).toEqual(shownFields(endToEndFields(byText)));
        },
      ),
      RUNS,
    );
    expect(Math.min(kinds.response, kinds.problem)).toBeGreaterThan(randomCases(RUNS.numRuns) / 20);
  });

  it.each([-1, 0, 1])('for a head and trailers %i bytes above their limit', (over) => {
    const parts = { method: 'GET', path: '/', authority: 'a', hasBody: false };
    const bare = requestHeadByText({ ...parts, headers: [['x', '']] }) as RequestHead;
    const head: [string, string][] = [['x', 'y'.repeat(HTTP1_BOUNDS.headMaxBytes - bare.text.length + over)]];
    expect(shown(requestHeadFromParts({ ...parts, headers: head }))).toEqual(
      shown(requestHeadByText({ ...parts, headers: head })),
    );
    const trailers: [string, string][] = [['x', 'y'.repeat(HTTP1_BOUNDS.trailersMaxBytes - 'x: \r\n'.length + over)]];
    expect('kind' in trailersFromParts(trailers)).toBe(trailersByText(trailers) === null);
  });

  it('except that a status with extra characters is refused', () => {
    for (const status of ['200 OK', '200\r\nx: y', '1e2', ' 200', '200 ']) {
      expect(
        responseHeadFromParts({ status, fields: [], endsHere: true }, { method: 'GET', upgrade: null }),
      ).toMatchObject({
        kind: 'problem',
        status: 502,
      });
    }
  });

  it('for trailers', () => {
    fc.assert(
      fc.property(fieldsBy, (fields) => {
        const trailers = trailersFromParts(fields);
        const byText = trailersByText(fields);
        expect('kind' in trailers ? null : shownFields(trailers)).toEqual(byText && shownFields(byText));
      }),
      RUNS,
    );
  });
});

describe('a request head built from HTTP/2 parts', () => {
  const PARTS = {
    method: 'POST',
    path: '/x',
    authority: 'web.localhost',
    headers: [] as [string, string][],
    hasBody: true,
  };

  it('has framing, host and TE like any other head', () => {
    const headers: [string, string][] = [
      ['te', 'trailers'],
      ['cookie', 'a'],
    ];
    const head = requestHeadFromParts({ ...PARTS, headers });
    expect(head).toMatchObject({
      kind: 'request',
      framing: { kind: 'chunked' },
      host: 'web.localhost',
      teTrailers: true,
    });
    const length = requestHeadFromParts({ ...PARTS, headers: [['content-length', '5']] });
    expect(length).toMatchObject({ framing: { kind: 'length', length: 5 } });
    expect(requestHeadFromParts({ ...PARTS, hasBody: false })).toMatchObject({ framing: { kind: 'none' } });
  });

  it.each([
    ['a line break in the method', { method: 'GET / HTTP/1.1\r\nX: y\r\n\r\nGET' }],
    ['a line break in the path', { path: '/ HTTP/1.1\r\nX: y' }],
    ['a space in the path', { path: '/ x' }],
    ['an absolute path', { path: 'http://evil.localhost/' }],
    ['an empty path', { path: '' }],
    ['a line break in the authority', { authority: 'a\r\nX: y' }],
    ['an empty authority', { authority: '' }],
    ['a line break in a value', { headers: [['x', 'y\r\nz: w']] }],
    ['NUL in a value', { headers: [['x', '\0']] }],
    ['a character beyond a byte', { headers: [['x', '\u{20ac}']] }],
    ['a line break in a name', { headers: [['x: y\r\nz', 'w']] }],
    ['a second Host', { headers: [['host', 'evil']] }],
    ['Transfer-Encoding', { headers: [['transfer-encoding', 'chunked']] }],
    ['Connection', { headers: [['connection', 'close']] }],
    ['Upgrade', { headers: [['upgrade', 'websocket']] }],
    ['TE', { headers: [['te', 'gzip']] }],
    [
      'two lengths',
      {
        headers: [
          ['content-length', '1'],
          ['content-length', '1'],
        ],
      },
    ],
    ['a length without a body', { headers: [['content-length', '1']], hasBody: false }],
  ])('is refused with %s', (_, parts) => {
    expect(requestHeadFromParts({ ...PARTS, ...(parts as object) })).toMatchObject({ kind: 'problem', status: 400 });
  });
});

describe('an HTTP/2 service', () => {
  /** Returns the fields by way of HTTP/1.1 text: the slow path, which proves that both kinds of services get the same. */
  const fieldsByText = (head: RequestHead, options: ServiceRequestOptions) => {
    const written = parseRequestHead(requestHeadFor(head, options), { fieldsMax: 200 });
    if (written.kind === 'problem') throw new Error(written.reason);
    const { method, path, authority, framing, teTrailers, headers } = written;
    const kept = headers.filter(({ role }) => ['ordinary', 'expect', 'forwarded-for', 'forwarded'].includes(role));
    const fields = kept.map(({ lower, value }) => [lower, value]);
    if (framing.kind === 'length') fields.push(['content-length', String(framing.length)]);
    if (teTrailers) fields.push(['te', 'trailers']);
    return { method, path, authority, fields };
  };

  const seen = (head: RequestHead, options: ServiceRequestOptions) => {
    const { fields, ...line } = requestFieldsFor(head, options);
    return { ...line, fields: fields.map(({ lower, value }) => [lower, value]) };
  };

  it('gets the same request as an HTTP/1.1 service, for any visitor input', () => {
    let heads = 0;
    fc.assert(
      fc.property(fc.integer(), fc.boolean(), optionsBy, (seed, isHurt, options) => {
        const chance = seededRandom(seed);
        const message = validMessage(chance);
        const text = isHurt ? mutated(message, chance) : message;
        const head = parseRequestHead(text.slice(0, text.indexOf('\r\n\r\n') + 4));
        // A request without a host is not routed.
        if (head.kind === 'problem' || head.host === '') return;
        heads += 1;
        expect(seen(head, options)).toEqual(fieldsByText(head, options));
      }),
      RUNS,
    );
    expect(heads).toBeGreaterThan(randomCases(RUNS.numRuns) / 2);
  });

  it.each([
    [
      'HTTP/1.0',
      ['GET / HTTP/1.0', 'Host: web.localhost', 'Expect: 100-continue', 'TE: trailers', 'Content-Length: 3'],
    ],
    [
      'an upgrade',
      ['GET / HTTP/1.1', 'Host: a', 'Connection: upgrade, te, x-a', 'Upgrade: websocket', 'TE: trailers', 'X-A: 1'],
    ],
    [
      'claims',
      ['GET / HTTP/1.1', 'Host: a', 'X-Forwarded-For: 6.6.6.6', 'X_Forwarded_For: 7', 'X-Forwarded-Host: evil'],
    ],
    ['as many fields as there may be', ['GET / HTTP/1.1', 'Host: a', ...Array.from({ length: 127 }, () => 'X: y')]],
  ])('gets the same request as an HTTP/1.1 service for %s', (_, lines) => {
    const head = parseRequestHead(`${lines.join('\r\n')}\r\n\r\n`) as RequestHead;
    const options: ServiceRequestOptions = { visitorAddress: '203.0.113.7', proto: 'https', hostHeader: 'keep' };
    expect(seen(head, options)).toEqual(fieldsByText(head, options));
  });
});
