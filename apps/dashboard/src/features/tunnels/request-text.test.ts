import type { CapturedRequest } from '@tunnel/contract';
import { describe, expect, it } from 'vitest';
import { noReplayText, previewBody, replayedText, statusText, statusTone, troubleText } from './request-text.ts';

const request = (more: Partial<CapturedRequest> = {}): CapturedRequest => ({
  id: 'req_1',
  tunnel_id: 'tun_1',
  at: '2030-01-01T00:00:00.000Z',
  method: 'GET',
  path: '/',
  status: 200,
  duration_ms: 4,
  request_headers: {},
  response_headers: {},
  request_size: 0,
  response_size: 2,
  request_body: null,
  response_body: 'ok',
  aborted: false,
  error: null,
  replayable: true,
  ...more,
});

it('the tone of an HTTP status follows its class', () => {
  expect([200, 204, 301, 404, 500, 502, null].map(statusTone)).toEqual([
    ...['good', 'good', 'accent', 'warn', 'bad', 'bad', 'neutral'],
  ]);
});

it('a request without a status is pending or got no answer', () => {
  expect(statusText(request())).toBe('200');
  expect(statusText(request({ status: null, duration_ms: null }))).toBe('Pending');
  expect(statusText(request({ status: null, duration_ms: 9, aborted: true }))).toBe('No answer');
});

it('a failed request shows the error code, or else that the visitor disconnected', () => {
  expect(troubleText(request())).toBeNull();
  expect(troubleText(request({ error: 'LOCAL_UNREACHABLE', aborted: true }))).toContain('LOCAL_UNREACHABLE');
  expect(troubleText(request({ aborted: true }))).toContain('visitor disconnected');
});

it('a replay is offered only for a completely stored request of an open tunnel', () => {
  expect(noReplayText(request(), true)).toBeNull();
  expect(noReplayText(request({ replayable: false }), true)).toContain('not stored completely');
  expect(noReplayText(request(), false)).toContain('ended');
});

it('a request answered by a rule shows no error and cannot be replayed', () => {
  const policy = { answered_by: { index: 1, name: null, action: 'deny' }, matched: [1], user: null };
  const answered = request({ policy, status: 403, error: 'POLICY_DENIED', replayable: false });
  expect(troubleText(answered)).toBeNull();
  expect(noReplayText(answered, true)).toContain('a rule answered');
});

it('a replay shows status and duration', () => {
  expect(replayedText(request({ duration_ms: 8.04 }))).toBe('Replayed: 200 in 8.0 ms.');
  expect(replayedText(request({ status: null, duration_ms: null, aborted: true }))).toBe('Replayed: No answer.');
});

describe('the body of a captured request', () => {
  it('is formatted if it is JSON, and otherwise left as it is', () => {
    expect(previewBody('{"a":1}', 7, 'application/json').text).toBe('{\n  "a": 1\n}');
    expect(previewBody('{"a":', 5, 'application/json').text).toBe('{"a":');
    expect(previewBody('a=1', 3, undefined)).toEqual({ text: 'a=1', note: null });
  });

  it('has a note if missing or truncated', () => {
    expect(previewBody(null, 0, undefined)).toEqual({ text: null, note: 'No body.' });
    expect(previewBody(null, 9, 'image/png')).toMatchObject({ text: null, note: expect.stringContaining('not text') });
    expect(previewBody('x', 20_000, 'text/plain').note).toBe('The first 16 KiB.');
  });
});
