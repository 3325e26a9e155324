import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { capturedRequest } from '@tunnel/contract';
import { describe, expect, it } from 'vitest';
import { captureStore, captureTunnel, requestHead, responseHead } from './capture.fixture.ts';
import { presentCapture } from './capture-service.ts';
import type { CaptureRecorder } from './recorder.ts';

const { store } = captureStore();
const record = (head = requestHead('GET /')): CaptureRecorder =>
  store.begin(captureTunnel('tun_web'), head, 0, 'data') as CaptureRecorder;

const present = async (recorder: CaptureRecorder, withBodies = true) =>
  capturedRequest
    .strict()
    .parse(await presentCapture(recorder, { tunnelId: 'tun_web', withBodies, idOf: (one) => store.idOf(one) }));

const responseBody = async (body: string | Buffer, ...fields: string[]): Promise<string | null> => {
  const recorder = record();
  const bytes = Buffer.from(body as string);
  recorder.onResponseHead(responseHead(200, ...fields), 'data');
  recorder.onResponseBody(bytes, 0, bytes.length);
  return (await present(recorder)).response_body;
};

it('a request in progress is shown without status, duration and bodies', async () => {
  expect(await present(record())).toMatchObject({
    at: '2030-01-01T00:00:00.000Z',
    status: null,
    duration_ms: null,
    response_headers: {},
    request_size: 0,
    request_body: null,
    response_body: null,
    aborted: false,
    replayable: false,
  });
});

it('secrets in URLs, headers, forms and JSON bodies are redacted', async () => {
  const form = 'user=ann&password=hunter2&code=hunter2';
  const recorder = record(
    requestHead(
      'POST http://web.localhost/sign-in?api_key=hunter2&page=1',
      'Cookie: a=hunter2',
      'authorization: Basic hunter2',
      'X-Api-Key: hunter2',
      'Proxy-Authorization: hunter2',
      'Referer: https://other.example/?token=hunter2',
      'Accept: a',
      'ACCEPT: b',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${form.length}`,
    ),
  );
  recorder.onRequestBody(Buffer.from(form), 0, form.length);
  const json = '{"access_token":"hunter2","deep":{"clientSecret" : "hun\\"ter2"},"tokens":["hunter2"],"name":"ann"}';
  recorder.onResponseHead(responseHead(200, 'Set-Cookie: b=hunter2', 'Content-Type: application/json'), 'data');
  recorder.onResponseBody(Buffer.from(json), 0, json.length);
  const shown = await present(recorder);
  expect(JSON.stringify(shown)).not.toMatch(/hunter2|ter2/);
  expect(shown).toMatchObject({
    path: '/sign-in?api_key=[redacted]&page=1',
    request_body: 'user=ann&password=[redacted]&code=[redacted]',
    request_headers: { accept: 'a, b', cookie: '[redacted]' },
    response_headers: { 'set-cookie': '[redacted]' },
  });
  expect(JSON.parse(shown.response_body ?? '')).toEqual({
    access_token: '[redacted]',
    deep: { clientSecret: '[redacted]' },
    tokens: '[redacted]',
    name: 'ann',
  });
});

describe('captured bodies', () => {
  const JSON_TYPE = 'Content-Type: application/json';

  it('JSON secrets are redacted in truncated bodies and under escaped keys; null and error codes stay', async () => {
    expect(await responseBody('{"a":1,"password":"hunt', JSON_TYPE)).toBe('{"a":1,"password":"[redacted]"');
    expect(await responseBody('{"a":1,"password":"hunt\\', JSON_TYPE)).toBe('{"a":1,"password":"[redacted]"');
    expect(await responseBody('{"to\\u006ben":12345}', JSON_TYPE)).toBe('{"to\\u006ben":"[redacted]"}');
    expect(await responseBody('{"token":null,"code":"NOT_FOUND"}', JSON_TYPE)).toBe(
      '{"token":null,"code":"NOT_FOUND"}',
    );
  });

  it('a body full of quotes is searched for secrets within 10 seconds', async () => {
    const startedMs = performance.now();
    await responseBody('\\"'.repeat(8000), JSON_TYPE);
    await responseBody('"'.repeat(16_000), JSON_TYPE);
    // The scan takes milliseconds. Comparing every quote with every other quote would take minutes.
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  it('are left out for callers that may not read bodies, while their sizes stay visible', async () => {
    const recorder = record(requestHead('POST /', 'Content-Type: text/plain', 'Content-Length: 2'));
    recorder.onRequestBody(Buffer.from('hi'), 0, 2);
    expect((await present(recorder)).request_body).toBe('hi');
    expect(await present(recorder, false)).toMatchObject({ request_body: null, request_size: 2 });
  });

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('%s bodies are decompressed, even if only their beginning was kept', async (coding, pack) => {
    const text = Array.from({ length: 20_000 }, (_, n) => `${(n * 2_654_435_761) % 4_294_967_296}`).join(' ');
    const fields = ['Content-Type: text/plain', `Content-Encoding: ${coding}`];
    expect(await responseBody(pack(Buffer.from('short')), ...fields)).toBe('short');
    const shown = await responseBody(pack(Buffer.from(text)), ...fields);
    expect(shown).toBe(text.slice(0, 16_384));
  });

  it('corrupt gzip, bodies that unpack to too much and unknown codings are not shown', async () => {
    const fields = ['Content-Type: text/plain', 'Content-Encoding: gzip'];
    expect(await responseBody('not gzip', ...fields)).toBeNull();
    expect(await responseBody(gzipSync(Buffer.alloc(8 * 1024 * 1024)), ...fields)).toBeNull();
    expect(await responseBody('x', 'Content-Type: text/plain', 'Content-Encoding: zstd')).toBeNull();
  });

  it('text is decoded by its charset, and a character cut in half at the end is dropped', async () => {
    expect(await responseBody(Buffer.from('f\xfcr', 'latin1'), 'Content-Type: text/plain; charset=iso-8859-1')).toBe(
      'für',
    );
    expect(await responseBody('für', 'Content-Type: text/plain; charset=nonsense')).toBe('für');
    expect(await responseBody(`${'ü'.repeat(8191)}aü`, 'Content-Type: text/plain')).toBe(`${'ü'.repeat(8191)}a`);
  });
});

describe('a captured request', () => {
  const isReplayable = async (recorder: CaptureRecorder, end: 'complete' | 'aborted' = 'complete') => {
    recorder.finish(1, end);
    return (await present(recorder)).replayable;
  };
  const post = () => record(requestHead('POST /', 'Content-Length: 20000'));

  it('is replayable without a body, or with a complete body of at most 16 KiB', async () => {
    expect(await isReplayable(record(), 'aborted')).toBe(true);
    const cutOff = post();
    cutOff.onRequestBody(Buffer.alloc(10), 0, 10);
    expect(await isReplayable(cutOff, 'aborted')).toBe(false);
    const tooLong = post();
    tooLong.onRequestBody(Buffer.alloc(20_000), 0, 20_000);
    tooLong.onRequestEnd();
    expect(await isReplayable(tooLong)).toBe(false);
    const whole = record(requestHead('POST /', 'Transfer-Encoding: chunked'));
    whole.onRequestBody(Buffer.alloc(16_384), 0, 16_384);
    whole.onRequestEnd();
    expect(await isReplayable(whole)).toBe(true);
  });

  it('is not replayable after a switch of protocols', async () => {
    const recorder = record();
    recorder.onResponseHead(responseHead(101, 'Upgrade: websocket', 'Connection: Upgrade'), 'data');
    expect(await isReplayable(recorder)).toBe(false);
  });
});
