// Invalid input to every endpoint with a body: the response has the right status, names the field, and is never a 500.
import { createConnection } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from './api-request.fixture.ts';
import { onSharedPlatform, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { BODY_ENDPOINTS, type BodyEndpoint } from './request-bodies.fixture.ts';
import { row } from './rows.fixture.ts';

const WRONG_TYPES = [7, true, [], ['a'], {}, { a: 1 }, -0.5, 1e308];
const NO_TEXT = ['\u0000', 'long enough\u0000', '\ud800', 'long enough \udfff', '\udc00\ud800 long enough'];
const NOT_JSON = [
  '',
  '{',
  '{"email": ',
  '{"email"}',
  "{'email': 'a'}",
  '{"a":1}}',
  'email=a',
  '\u0000',
  '[',
  '{"a":NaN}',
  '﻿{',
];
const NOT_OBJECTS = ['null', '[]', '"text"', '7', 'true', '[{}]'];
const OTHER_TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/xml',
  '',
];

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
beforeAll(async () => {
  ann = await harness.person();
});

const send = ({ method, path, needsUser }: BodyEndpoint, body: unknown): Promise<Answer> =>
  harness.ask(method, path, { body, ...(needsUser ? { token: ann.token } : {}) });

const sendRaw = (
  { method, path, needsUser }: BodyEndpoint,
  raw: string | Uint8Array<ArrayBuffer>,
  type = 'application/json',
): Promise<Answer> =>
  harness.ask(method, path, { raw, headers: { 'content-type': type }, ...(needsUser ? { token: ann.token } : {}) });

const expectField = ({ status, code, error }: Answer, field: string, given: unknown): void => {
  const shown = JSON.stringify(given).slice(0, 80);
  expect([shown, status, code]).toEqual([shown, 400, 'API_BAD_REQUEST']);
  expect(error, shown).toMatch(new RegExp(`^${field}\\b`));
};

describe.each(BODY_ENDPOINTS)('$method $path', (endpoint) => {
  const { fields, good, goodStatus } = endpoint;

  it('accepts a valid body, and ignores unknown fields', async () => {
    expect((await send(endpoint, good())).status).toBe(goodStatus);
    const more = { ...good(), plan: 'payg', id: 7, role: { admin: true }, __proto__: 1, 'odd key': null };
    expect((await send(endpoint, more)).status).toBe(goodStatus);
    const sneaky = JSON.stringify(good()).replace('{', '{"__proto__":{"admin":true},"constructor":null,');
    expect((await sendRaw(endpoint, sneaky)).status).toBe(goodStatus);
    expect((await sendRaw(endpoint, JSON.stringify(good()), 'application/json; charset=utf-8')).status).toBe(
      goodStatus,
    );
  });

  it('returns 400 with the field name if a field is missing, null or of the wrong type', async () => {
    for (const { name, required, nullable = false } of fields) {
      const { [name]: _, ...without } = good();
      if (required) expectField(await send(endpoint, without), name, without);
      for (const value of [...WRONG_TYPES, ...(nullable ? [] : [null])]) {
        const body = { ...good(), [name]: value };
        expectField(await send(endpoint, body), name, body);
      }
    }
  });

  it('returns 400 with the field name if a value is not allowed', async () => {
    for (const { name, wrong = [] } of fields) {
      for (const value of wrong) expectField(await send(endpoint, { ...good(), [name]: value }), name, value);
    }
  });

  it('returns 400 with the field name for a NUL character or a lone surrogate in a text', async () => {
    for (const { name } of fields) {
      for (const value of NO_TEXT) expectField(await send(endpoint, { ...good(), [name]: value }), name, value);
    }
  });

  it('returns 400 for a body that is not JSON, not an object or not UTF-8', async () => {
    for (const raw of NOT_JSON) {
      const { status, code, error } = await sendRaw(endpoint, raw);
      expect([raw, status, code]).toEqual([raw, 400, 'API_BAD_REQUEST']);
      expect(error, raw).toMatch(/JSON|body/);
    }
    for (const raw of NOT_OBJECTS) expectField(await sendRaw(endpoint, raw), 'body', raw);
    const deep = await sendRaw(endpoint, `${'['.repeat(30_000)}${']'.repeat(30_000)}`);
    expectField(deep, 'body', 'deep');
    const latin1 = await sendRaw(endpoint, new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]));
    expect([latin1.status, latin1.code]).toEqual([400, 'API_BAD_REQUEST']);
    const inText = new Uint8Array(Buffer.from(JSON.stringify({ ...good(), padding: '\u00ff' }), 'latin1'));
    expect(await sendRaw(endpoint, inText)).toMatchObject({ status: 400, error: 'the body is not valid UTF-8' });
  });

  it('returns 413 for a body of a megabyte, with a length or chunked', async () => {
    const large = JSON.stringify({ ...good(), [fields[0]?.name ?? '']: 'a'.repeat(1_000_000) });
    const answer = await sendRaw(endpoint, large);
    expect([answer.status, answer.code, answer.error]).toEqual([
      413,
      'API_BODY_TOO_LARGE',
      expect.stringMatching(/65536/),
    ]);
    expect(await statusOfChunked(endpoint, large)).toBe(413);
    const allowed = { ...good(), padding: 'a'.repeat(60_000) };
    expect((await send(endpoint, allowed)).status).toBe(goodStatus);
  });

  it('returns 415 for a body with a different or empty media type', async () => {
    for (const type of OTHER_TYPES) {
      const { status, code } = await sendRaw(endpoint, JSON.stringify(good()), type);
      expect([type, status, code]).toEqual([type, 415, 'API_MEDIA_TYPE']);
    }
  });
});

/** Sends a chunked body without a content-length and returns the status. A server that answers early may also close the connection. */
const statusOfChunked = ({ method, path, needsUser }: BodyEndpoint, text: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(harness.url);
    const socket = createConnection({ host: hostname, port: Number(port) });
    let heard = '';
    socket.on('data', (piece) => {
      heard += piece.toString();
      const status = /^HTTP\/1\.1 (\d+)/.exec(heard)?.[1];
      if (status === undefined) return;
      socket.destroy();
      resolve(Number(status));
    });
    socket.on('error', reject);
    const user = needsUser ? `authorization: Bearer ${ann.token}\r\n` : '';
    const head = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${user}`;
    socket.write(`${head}transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`);
  });

it(row('Errors', 2, '400 names the field'), async () => {
  const { status, error } = await harness.post('/keys', {}, ann.token);
  expect([status, error]).toEqual([400, expect.stringMatching(/^label/)]);
});
