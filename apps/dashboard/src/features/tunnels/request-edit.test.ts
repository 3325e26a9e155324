import type { CapturedRequest } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { draftFromRequest, type RequestDraft, readDraft } from './request-edit.ts';

const request: CapturedRequest = {
  id: 'req_1',
  tunnel_id: 'tun_1',
  at: '2030-01-01T00:00:00.000Z',
  method: 'POST',
  path: '/hook?token=[redacted]',
  status: 200,
  duration_ms: 1,
  response_headers: {},
  response_size: 0,
  response_body: null,
  request_headers: {
    host: 'web.test',
    'content-length': '7',
    'content-type': 'application/json',
    cookie: '[redacted]',
  },
  request_size: 7,
  request_body: '{"a":1}',
  aborted: false,
  error: null,
  replayable: true,
};

const edit = (change: Partial<RequestDraft>, of: CapturedRequest = request) =>
  readDraft(of, { ...draftFromRequest(of), ...change });

it('the replay editor shows method, path, headers and body, without headers that are set for each request', () => {
  expect(draftFromRequest(request)).toEqual({
    method: 'POST',
    path: '/hook?token=[redacted]',
    headers: 'host: web.test\ncontent-type: application/json\ncookie: [redacted]',
    body: '{\n  "a": 1\n}',
  });
  for (const body of ['{"id":12345678901234567890}', '{"a":1,"a":2}', '{ "a": 1 }', 'a=1']) {
    expect(draftFromRequest({ ...request, request_body: body }).body).toBe(body);
  }
  expect(draftFromRequest({ ...request, request_body: null }).body).toBeNull();
  expect(draftFromRequest({ ...request, request_size: 0, request_body: null }).body).toBe('');
});

it('the replay editor sends only the changed fields', () => {
  expect(edit({})).toEqual({ kind: 'edit', edit: {} });
  expect(edit({ method: ' put ' })).toEqual({ kind: 'edit', edit: { method: 'PUT' } });
  expect(edit({ path: '/a b/ü#x?token=[redacted]' })).toEqual({
    kind: 'edit',
    edit: { path: '/a%20b/%C3%BC%23x?token=[redacted]' },
  });
  expect(edit({ headers: 'cookie: [redacted]\n\nx-new:1: 2 ' })).toEqual({
    kind: 'edit',
    edit: {
      headers: [
        ['cookie', '[redacted]'],
        ['x-new', '1: 2'],
      ],
    },
  });
  expect(edit({ body: '{}' })).toEqual({ kind: 'edit', edit: { body: '{}' } });
  const parts = { ...request, request_headers: {}, request_body: '--x\r\na\r\n' };
  expect(edit({ body: '--x\nb\n' }, parts)).toEqual({ kind: 'edit', edit: { body: '--x\r\nb\r\n' } });
});

it.each([
  [{ method: 'A B' }, 'method'],
  [{ method: '' }, 'method'],
  [{ path: 'http://x/' }, 'path'],
  [{ headers: 'no colon' }, 'headers'],
  [{ headers: ': value' }, 'headers'],
])('the replay editor shows the error of %j at its field', (change, field) => {
  expect(edit(change)).toMatchObject({ kind: 'problem', field });
});
