// REST routes for waiting for the next captured request, and for reading a captured request by id.
import { apiError, awaitedRequest, capturedRequest } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { requestHead } from '../capture/capture.fixture.ts';
import type { CaptureRecorder } from '../capture/recorder.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, httpTunnel, type RestFixture, startRest } from './rest.fixture.ts';

const web = httpTunnel('tun_web', { kind: 'account', accountId: 'alice' });
const PATH = '/api/tunnels/tun_web/requests';
let rest: RestFixture;
beforeEach(async () => {
  rest = await startRest();
  rest.tunnels.set(web.tunnelId, web);
});
afterEach(() => rest.stop());

const visit = (line: string): CaptureRecorder => {
  const head = requestHead(line, 'Content-Type: text/plain', 'Content-Length: 2');
  const recorder = rest.captures.begin(web, head, 1, 'data') as CaptureRecorder;
  recorder.onRequestBody(Buffer.from('hi'), 0, 2);
  recorder.onRequestEnd();
  recorder.finish(3, 'complete');
  return recorder;
};
const waiting = (count: number) => eventually(() => expect(rest.captures.waits.count).toBe(count));

it('GET requests/next returns the next request matching the filters, in the form of the list', async () => {
  const answer = rest.request(`${PATH}/next?method=POST&path_contains=/hook`, { token: ALICE_KEY });
  await waiting(1);
  visit('GET /hook');
  visit('POST /hook?key=hunter2');
  const { request, cursor } = awaitedRequest.strict().parse(await (await answer).json());
  expect(request).toMatchObject({ method: 'POST', path: '/hook?key=[redacted]', request_body: 'hi', duration_ms: 2 });
  expect(cursor).toBeNull();
  await waiting(0);
});

it('GET requests/next shows the operator an account’s request without its body', async () => {
  const answer = rest.request(`${PATH}/next`, { token: ADMIN_TOKEN });
  await waiting(1);
  visit('POST /hook');
  expect(await (await answer).json()).toMatchObject({ request: { path: '/hook', request_body: null } });
});

it('GET requests/next returns no request after the timeout, and a cursor for continuing without a gap', async () => {
  const first = await rest.request(`${PATH}/next?timeout_secs=1`, { token: ALICE_KEY });
  const { request, cursor } = awaitedRequest.strict().parse(await first.json());
  expect(request).toBeNull();
  const again = rest.captures.begin(web, requestHead('GET /between'), performance.now(), 'data') as CaptureRecorder;
  again.finish(performance.now(), 'complete');
  const next = await rest.request(`${PATH}/next?after=${cursor}`, { token: ALICE_KEY });
  expect(await next.json()).toMatchObject({ request: { path: '/between' } });
});

it('GET requests/next stops waiting as soon as the caller disconnects', async () => {
  const caller = new AbortController();
  const headers = { authorization: `Bearer ${ALICE_KEY}` };
  const end = fetch(`${rest.url}${PATH}/next`, { headers, signal: caller.signal }).catch(String);
  await waiting(1);
  caller.abort();
  expect(await end).toContain('aborted');
  await waiting(0);
});

it.each([
  ['tun_web/requests/next', BOB_KEY, 404, 'TUNNEL_UNKNOWN'],
  ['tun_none/requests/next', ALICE_KEY, 404, 'TUNNEL_UNKNOWN'],
  ['tun_alice/requests/next', ALICE_KEY, 400, 'TUNNEL_NOT_HTTP'],
  ['tun_web/requests/next?timeout_secs=0', ALICE_KEY, 400, 'API_BAD_REQUEST'],
  ['tun_web/requests/next?timeout_secs=31', ALICE_KEY, 400, 'API_BAD_REQUEST'],
  ['tun_web/requests/next?method=', ALICE_KEY, 400, 'API_BAD_REQUEST'],
  ['tun_web/requests/next?after=nonsense', ALICE_KEY, 400, 'API_BAD_REQUEST'],
  ['tun_web/requests/next', 'tnl_wrong', 401, 'AUTH_TOKEN_INVALID'],
  ['tun_web/requests/req_none', ALICE_KEY, 404, 'CAPTURE_UNKNOWN'],
  ['tun_web/requests/req_none', 'tnl_wrong', 401, 'AUTH_TOKEN_INVALID'],
  ['tun_bob/requests/req_none', ALICE_KEY, 404, 'TUNNEL_UNKNOWN'],
] as const)('GET %s with key %s: %i %s', async (path, token, status, code) => {
  const response = await rest.request(`/api/tunnels/${path}`, { token });
  expect([response.status, apiError.parse(await response.json()).code]).toEqual([status, code]);
});

it('GET requests/:request_id shows a request by id, even after its tunnel has closed', async () => {
  const id = rest.captures.idOf(visit('POST /hook'));
  const show = async () => {
    const response = await rest.request(`${PATH}/${id}`, { token: ALICE_KEY });
    return capturedRequest.strict().parse(await response.json());
  };
  expect(await show()).toMatchObject({ id, method: 'POST', path: '/hook', request_body: 'hi' });
  rest.tunnels.delete(web.tunnelId);
  rest.captures.tunnelRemoved(web);
  expect((await show()).id).toBe(id);
  expect((await rest.request(`${PATH}/next`, { token: ALICE_KEY })).status).toBe(410);
});
