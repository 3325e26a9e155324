import { apiError, capturedRequest, captureList } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requestHead, responseHead } from '../capture/capture.fixture.ts';
import type { ReplaySource } from '../capture/capture-store.ts';
import type { CaptureRecorder } from '../capture/recorder.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, httpTunnel, type RestFixture, startRest } from './rest.fixture.ts';

const ALICE = { kind: 'account', accountId: 'alice' } as const;
const web = httpTunnel('tun_web', ALICE);
const JSON_TYPE = 'Content-Type: application/json';
let rest: RestFixture;

beforeEach(async () => {
  rest = await startRest();
  rest.tunnels.set(web.tunnelId, web);
});
afterEach(() => rest.stop());

/** Captures a request of a visitor and its response, as if the local service had responded. */
const serve = (path: string, tunnel = web, replay: ReplaySource | null = null): CaptureRecorder => {
  const head = requestHead(`POST ${path}`, 'Authorization: Bearer hunter2', JSON_TYPE, 'Content-Length: 2');
  const recorder = rest.captures.begin(tunnel, head, 100, 'chunks', { replay }) as CaptureRecorder;
  recorder.onRequestBody(Buffer.from('{}'), 0, 2);
  recorder.onRequestEnd();
  recorder.onResponseHead(responseHead(201, JSON_TYPE, 'Content-Length: 4'), 'chunks');
  recorder.onResponseBody(Buffer.from('true'), 0, 4);
  recorder.finish(112.5, 'complete');
  return recorder;
};

const list = async (query = '', token = ALICE_KEY) => {
  const response = await rest.request(`/api/tunnels/tun_web/requests${query}`, { token });
  expect(response.status).toBe(200);
  return captureList.strict().parse(await response.json());
};

const expectError = async (response: Response, status: number, code: string): Promise<string> => {
  expect(response.status).toBe(status);
  const body = apiError.parse(await response.json());
  expect(body.code).toBe(code);
  return body.error;
};

describe('GET /api/tunnels/:id/requests, status 200', () => {
  it('lists the captured requests, newest first, with secrets redacted', async () => {
    serve('/first?page=2&token=hunter2');
    serve('/second');
    const { requests, ...others } = await list();
    expect(others).toEqual({ tunnel_id: 'tun_web', truncated: false, next_cursor: null });
    expect(requests.map(({ path }) => path)).toEqual(['/second', '/first?page=2&token=[redacted]']);
    expect(capturedRequest.strict().parse(requests[1])).toMatchObject({
      tunnel_id: 'tun_web',
      method: 'POST',
      status: 201,
      duration_ms: 12.5,
      request_headers: { host: 'web.localhost', authorization: '[redacted]', 'content-type': 'application/json' },
      response_headers: { 'content-type': 'application/json', 'content-length': '4' },
      request_size: 2,
      response_size: 4,
      request_body: '{}',
      response_body: 'true',
      aborted: false,
      error: null,
      replayable: true,
    });
    expect(JSON.stringify(requests)).not.toContain('hunter2');
  });

  it('returns 50 requests unless limit asks for fewer or more, and marks a truncated list', async () => {
    for (let n = 0; n < 120; n++) serve(`/${n}`);
    expect((await list()).requests).toHaveLength(50);
    expect((await list('?limit=100')).requests).toHaveLength(100);
    const one = await list('?limit=1');
    expect([one.requests.map(({ path }) => path), one.truncated]).toEqual([['/119'], true]);
  });

  it('pages return every captured request exactly once while new requests arrive', async () => {
    for (let n = 0; n < 230; n++) serve(`/${n}`);
    const seen: string[] = [];
    const pages: [number, boolean, boolean][] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list(`?limit=90${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...page.requests.map(({ path }) => path));
      pages.push([page.requests.length, page.truncated, page.next_cursor === null]);
      cursor = page.next_cursor ?? null;
      serve('/meanwhile');
    }
    // Each new request during the paging evicts the oldest captured request.
    expect(pages).toEqual([
      [90, true, false],
      [90, true, false],
      [18, true, true],
    ]);
    expect(seen).toEqual(Array.from({ length: 198 }, (_, n) => `/${229 - n}`));
  });

  it('a full last page has no next_cursor', async () => {
    for (let n = 0; n < 4; n++) serve(`/${n}`);
    const first = await list('?limit=2');
    const last = await list(`?limit=2&cursor=${first.next_cursor}`);
    expect([last.requests.map(({ path }) => path), last.next_cursor, last.truncated]).toEqual([
      ['/1', '/0'],
      null,
      false,
    ]);
  });

  it('pages of a filtered list contain only matching requests', async () => {
    for (let n = 0; n < 6; n++) {
      serve(`/open/${n}`);
      serve(`/denied/${n}`).policy = {
        answered_by: { index: 1, name: null, action: 'deny' },
        matched: [1],
        user: null,
      };
    }
    const first = await list('?answered=true&limit=4');
    const others = await list(`?answered=true&limit=4&cursor=${first.next_cursor}`);
    const paths = [...first.requests, ...others.requests].map(({ path }) => path);
    expect([paths, others.next_cursor]).toEqual([[5, 4, 3, 2, 1, 0].map((n) => `/denied/${n}`), null]);
  });

  it('a cursor issued before a restart of the edge returns an empty list', async () => {
    serve('/new');
    expect(await list('?cursor=k3b9f-1c')).toMatchObject({ requests: [], next_cursor: null });
  });

  it('the operator gets an account’s requests without bodies, and the operator’s own requests with bodies', async () => {
    serve('/alice');
    expect((await list('', ADMIN_TOKEN)).requests[0]).toMatchObject({
      path: '/alice',
      request_size: 2,
      request_body: null,
      response_body: null,
    });
    const own = httpTunnel('tun_web', { kind: 'operator' });
    rest.tunnels.set('tun_web', own);
    expect((await list('', ADMIN_TOKEN)).requests[0]?.request_body).toBe('{}');
  });

  it('the answered filter separates requests answered by a rule from requests answered by the service', async () => {
    serve('/open').policy = { answered_by: null, matched: [2], user: 'ann@example.com' };
    const denied = serve('/admin');
    denied.policy = { answered_by: { index: 1, name: 'office', action: 'deny' }, matched: [1], user: null };
    serve('/rewritten').askedPath = '/v1/rewritten?token=hunter2';
    const paths = async (query: string) => (await list(query)).requests.map(({ path }) => path);
    expect(await paths('')).toEqual(['/v1/rewritten?token=[redacted]', '/admin', '/open']);
    expect(await paths('?answered=false')).toEqual(['/v1/rewritten?token=[redacted]', '/open']);
    const { requests, truncated } = await list('?answered=true&limit=1');
    expect([requests, truncated]).toEqual([
      [expect.objectContaining({ path: '/admin', replayable: false, policy: denied.policy })],
      false,
    ]);
    expect((await list('?answered=false&limit=1')).truncated).toBe(true);
    expect((await list()).requests.map(({ policy }) => policy?.user)).toEqual([undefined, null, 'ann@example.com']);
    const bad = await rest.request('/api/tunnels/tun_web/requests?answered=maybe', { token: ALICE_KEY });
    expect(await expectError(bad, 400, 'API_BAD_REQUEST')).toContain(
      "answered must be one of true, false, got 'maybe'",
    );
  });

  it('the owner can list the requests of a closed tunnel; other accounts get a 404', async () => {
    serve('/last');
    rest.tunnels.delete('tun_web');
    rest.captures.tunnelRemoved(web);
    expect((await list()).requests).toHaveLength(1);
    const path = '/api/tunnels/tun_web/requests';
    await expectError(await rest.request(path, { token: BOB_KEY }), 404, 'TUNNEL_UNKNOWN');
  });

  it('a tunnel without requests has an empty list', async () => {
    expect(await list()).toEqual({ tunnel_id: 'tun_web', requests: [], truncated: false, next_cursor: null });
  });
});

describe('GET /api/tunnels/:id/requests, status 400', () => {
  it.each(['0', '101', '-1', '1.5', '', 'all', '1e1', '99999999999999999999'])('rejects limit=%s', async (limit) => {
    const response = await rest.request(`/api/tunnels/tun_web/requests?limit=${limit}`, { token: ALICE_KEY });
    const text = await expectError(response, 400, 'API_BAD_REQUEST');
    expect(text).toContain(`limit must be an integer from 1 to 100, got '${limit.slice(0, 40)}'`);
  });

  it('rejects a repeated limit', async () => {
    const response = await rest.request('/api/tunnels/tun_web/requests?limit=1&limit=2', { token: ALICE_KEY });
    expect(await expectError(response, 400, 'API_BAD_REQUEST')).toContain('limit');
  });

  it.each([
    '',
    'nonsense',
    '-',
    'run-',
    '-1',
    'run-1-2',
    'run-!',
    'run-1%00',
    'run-99999999999',
    'x'.repeat(65),
    '%F0%9F',
    'a&cursor=b',
  ])('rejects cursor=%s', async (cursor) => {
    serve('/alice');
    const response = await rest.request(`/api/tunnels/tun_web/requests?cursor=${cursor}`, { token: ALICE_KEY });
    const text = await expectError(response, 400, 'API_BAD_REQUEST');
    expect(text).toContain('cursor must be the next_cursor of an earlier response');
  });

  it('rejects a tcp tunnel with TUNNEL_NOT_HTTP', async () => {
    const response = await rest.request('/api/tunnels/tun_alice/requests', { token: ALICE_KEY });
    expect(await expectError(response, 400, 'TUNNEL_NOT_HTTP')).toContain('tcp');
  });
});

describe('GET /api/tunnels/:id/requests, status 404', () => {
  it('an unknown tunnel and a tunnel of another account get the same TUNNEL_UNKNOWN', async () => {
    serve('/alice');
    for (const [id, token] of [
      ['tun_none', ALICE_KEY],
      ['tun_web', BOB_KEY],
      ['tun_alice', BOB_KEY],
    ] as const) {
      await expectError(await rest.request(`/api/tunnels/${id}/requests`, { token }), 404, 'TUNNEL_UNKNOWN');
    }
  });
});

const replay = (requestId: string, token = ALICE_KEY, body?: string) =>
  rest.request(`/api/tunnels/tun_web/requests/${requestId}/replay`, {
    method: 'POST',
    token,
    ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
  });

describe('POST /api/tunnels/:id/requests/:request_id/replay', () => {
  it('200: returns the new request with the id of the original in replay_of', async () => {
    const original = serve('/again');
    rest.onReplay = async (order) => {
      expect(order).toMatchObject({ tunnel: web, visitorAddress: '127.0.0.1' });
      return serve('/again', web, { original: order.original, isEdited: false });
    };
    const id = rest.captures.idOf(original);
    const response = await replay(id);
    expect(response.status).toBe(200);
    const answer = capturedRequest.strict().parse(await response.json());
    expect(answer).toMatchObject({ replay_of: id, status: 201, duration_ms: 12.5, response_body: 'true' });
    expect((await list()).requests.map((request) => request.id)).toEqual([answer.id, id]);
  });

  it('200: applies the edit in the body and marks the new request as edited', async () => {
    const original = serve('/again');
    const id = rest.captures.idOf(original);
    const edit = { method: 'PUT', path: '/other', headers: [['a', 'b']], body: 'c' };
    rest.onReplay = async (order) => {
      expect(order.edit).toEqual(edit);
      return serve('/other', web, { original: order.original, isEdited: true });
    };
    const response = await replay(id, ALICE_KEY, JSON.stringify(edit));
    expect(capturedRequest.strict().parse(await response.json())).toMatchObject({ replay_of: id, edited: true });
    rest.onReplay = async (order) => {
      expect(order.edit).toEqual({});
      return serve('/again', web, { original: order.original, isEdited: false });
    };
    for (const body of ['{}', '']) {
      const plain = await replay(id, ALICE_KEY, body);
      expect([plain.status, await plain.json()]).toEqual([200, expect.not.objectContaining({ edited: true })]);
    }
  });

  it.each([
    ['{"method":1}', /^method: /],
    ['{"path":""}', /^path: /],
    ['{"headers":{"a":"b"}}', /^headers: /],
    ['{"headers":[["a"]]}', /^headers/],
    ['{"body":null}', /^body: /],
    [JSON.stringify({ body: 'x'.repeat(16_385) }), /^body: /],
    ['{"url":"/"}', /^body: .*url/],
    ['[]', /^body: .*object/],
    ['{', /cannot be read/],
  ])('400: an edit of the wrong shape is rejected, %s', async (body, reason) => {
    const id = rest.captures.idOf(serve('/x'));
    expect(await expectError(await replay(id, ALICE_KEY, body), 400, 'API_BAD_REQUEST')).toMatch(reason);
  });

  it('404: an unknown request, an unknown tunnel and a tunnel of another account', async () => {
    const id = rest.captures.idOf(serve('/x'));
    await expectError(await replay('req_none'), 404, 'CAPTURE_UNKNOWN');
    await expectError(await replay(id, BOB_KEY), 404, 'TUNNEL_UNKNOWN');
    await expectError(
      await rest.request(`/api/tunnels/tun_none/requests/${id}/replay`, { method: 'POST', token: ALICE_KEY }),
      404,
      'TUNNEL_UNKNOWN',
    );
  });

  it.each([
    [409, new Fault('CAPTURE_NOT_REPLAYABLE', { reason: 'its body is gone' })],
    [429, new Fault('CAPTURE_REPLAYS_BUSY', { limit: 1, seconds: 30 })],
    [502, new Fault('LOCAL_UNREACHABLE', { reason: 'refused' })],
    [504, new Fault('LOCAL_TIMEOUT', { seconds: 30 })],
  ])('%i: a failed replay returns the code and message of the fault', async (status, fault) => {
    const id = rest.captures.idOf(serve('/x'));
    rest.onReplay = () => Promise.reject(fault);
    const response = await replay(id);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '30' : null);
    expect(await expectError(response, status, fault.code)).toBe(fault.message);
  });
});
