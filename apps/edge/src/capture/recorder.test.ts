import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { captureStore, captureTunnel, requestHead, responseHead } from './capture.fixture.ts';
import type { CaptureRecorder } from './recorder.ts';

const MAX = EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES;
const TEXT = 'Content-Type: text/plain';

const record = (head = requestHead('GET /'), options: { bodies?: boolean } = {}): CaptureRecorder =>
  captureStore(options).store.begin(captureTunnel('tun_web'), head, 1000, 'chunks') as CaptureRecorder;

const push = (take: (bytes: Buffer, start: number, end: number) => void, ...pieces: string[]): void => {
  for (const piece of pieces) {
    const bytes = Buffer.from(`<${piece}>`, 'latin1');
    take(bytes, 1, bytes.length - 1);
    // The memory belongs to the socket, which overwrites it after the call.
    bytes.fill(0);
  }
};

describe('captured bodies', () => {
  it('keep the first 16 KiB and count every byte', () => {
    const recorder = record();
    recorder.onResponseHead(responseHead(200, TEXT), 'chunks');
    push(recorder.onResponseBody.bind(recorder), 'a'.repeat(MAX - 1), 'bcd', 'e'.repeat(100));
    expect(recorder.responseBody?.kept).toBe(`${'a'.repeat(MAX - 1)}b`);
    expect(recorder.responseBody?.bytes).toBe(MAX + 102);
  });

  it('of responses are only counted unless they are text; request bodies are kept for replay', () => {
    const recorder = record(requestHead('POST /', 'Content-Type: image/png', 'Content-Length: 2'));
    push(recorder.onRequestBody.bind(recorder), '\x89P');
    recorder.onResponseHead(responseHead(200, 'Content-Type: image/png'), 'chunks');
    push(recorder.onResponseBody.bind(recorder), '\x89P');
    expect([recorder.requestBody?.kept, recorder.requestBody?.bytes]).toEqual(['\x89P', 2]);
    expect([recorder.responseBody?.kept, recorder.responseBody?.bytes]).toEqual(['', 2]);
  });

  it('are counted but not kept when capturing of bodies is off', () => {
    const recorder = record(requestHead('POST /', 'Content-Length: 2'), { bodies: false });
    push(recorder.onRequestBody.bind(recorder), 'ab');
    recorder.onResponseHead(responseHead(200, TEXT), 'chunks');
    push(recorder.onResponseBody.bind(recorder), 'ab');
    expect([recorder.requestBody?.kept, recorder.requestBody?.bytes]).toEqual(['', 2]);
    expect([recorder.responseBody?.kept, recorder.responseBody?.bytes]).toEqual(['', 2]);
  });

  it('keep the data of a chunked body without framing, however the body is split', () => {
    const recorder = record(requestHead('POST /', 'Transfer-Encoding: chunked'));
    push(recorder.onRequestBody.bind(recorder), ...'4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n');
    expect([recorder.requestBody?.kept, recorder.requestBody?.bytes]).toEqual(['wikipedia', 9]);
    recorder.onResponseHead(responseHead(200, TEXT, 'Transfer-Encoding: chunked'), 'chunks');
    push(recorder.onResponseBody.bind(recorder), '4\r\nwiki\r\n', '5\r\npedia\r\n0\r\n\r\n');
    expect([recorder.responseBody?.kept, recorder.responseBody?.bytes]).toEqual(['wikipedia', 9]);
  });

  it('keep the bytes unchanged when the edge relays a chunked body as data', () => {
    const recorder = record();
    recorder.onResponseHead(responseHead(200, TEXT, 'Transfer-Encoding: chunked'), 'data');
    push(recorder.onResponseBody.bind(recorder), '4\r\nwiki');
    expect(recorder.responseBody?.kept).toBe('4\r\nwiki');
  });

  it.each([
    ['text/html; charset=utf-8', true],
    ['application/json', true],
    ['application/vnd.api+json', true],
    ['image/svg+xml', true],
    ['application/x-www-form-urlencoded', true],
    ['TEXT/EVENT-STREAM', true],
    ['application/octet-stream', false],
    ['multipart/form-data; boundary=x', false],
    ['application/jsonish', false],
  ])('of type %s are kept as text: %s', (type, isText) => {
    const recorder = record();
    recorder.onResponseHead(responseHead(200, `Content-Type: ${type}`), 'chunks');
    push(recorder.onResponseBody.bind(recorder), 'x');
    expect(recorder.responseBody?.kept).toBe(isText ? 'x' : '');
  });
});

describe('the end of a request', () => {
  const ended = (status: number | null, end: 'complete' | 'aborted' | Fault) => {
    const recorder = record();
    if (status !== null) recorder.onResponseHead(responseHead(status), 'chunks');
    recorder.finish(1250, end);
    recorder.finish(9999, 'complete');
    const { durationMs, aborted, fault } = recorder;
    return { status: recorder.status, durationMs, aborted, fault };
  };
  const away = new Fault('LOCAL_UNREACHABLE', { reason: 'refused' });

  it('is recorded once: complete, aborted, answered by the edge, or cut off', () => {
    const durationMs = 250;
    expect(ended(200, 'complete')).toEqual({ status: 200, durationMs, aborted: false, fault: null });
    expect(ended(null, 'aborted')).toEqual({ status: 0, durationMs, aborted: true, fault: null });
    expect(ended(null, away)).toEqual({ status: 502, durationMs, aborted: false, fault: 'LOCAL_UNREACHABLE' });
    expect(ended(200, away)).toEqual({ status: 200, durationMs, aborted: true, fault: 'LOCAL_UNREACHABLE' });
  });
});
