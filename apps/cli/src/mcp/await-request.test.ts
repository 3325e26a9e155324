import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CapturedRequest } from '@tunnel/contract';
import { type Clock, Secret, systemClock } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EdgeTunnels } from '../api/edge-tunnels.ts';
import { awaitRequest } from './await-request.ts';

const captured = (id: string, more: Partial<CapturedRequest> = {}): CapturedRequest => ({
  id,
  tunnel_id: 'tun_a',
  at: '2030-01-31T12:00:00.000Z',
  method: 'POST',
  path: '/hook',
  status: 200,
  duration_ms: 1,
  request_headers: {},
  response_headers: {},
  request_size: 0,
  response_size: 0,
  request_body: null,
  response_body: null,
  aborted: false,
  error: null,
  replayable: true,
  ...more,
});

/** The system clock without pauses: every timer fires at once. */
const HASTY: Clock = { ...systemClock, setTimeout: (fn) => systemClock.setTimeout(fn, 0) };

let server: Server;
let asked: URL[];
/** The edge's answers, in the order of the calls. The last answer repeats. */
let answers: (readonly [status: number, body: unknown])[];
let held: ServerResponse[];

beforeEach(async () => {
  asked = [];
  held = [];
  server = createServer((request, response) => {
    asked.push(new URL(request.url ?? '', 'http://edge'));
    const [status, body] = (answers.length > 1 ? answers.shift() : answers[0]) ?? [500, {}];
    if (status === 0) held.push(response);
    else response.writeHead(status).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const edge = (): EdgeTunnels =>
  new EdgeTunnels({
    address: { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), loopbackOnly: true },
    token: new Secret('key'),
    caFile: undefined,
    insecure: false,
    proxyFor: () => null,
  });

const wait = (filter: object = {}, signal = new AbortController().signal, clock = HASTY) =>
  awaitRequest(edge(), { tunnelId: 'tun_a', withinMs: 60_000, ...filter }, signal, { clock });

const none = (cursor: string) => [200, { request: null, cursor }] as const;
const found = (request: CapturedRequest) => [200, { request, cursor: null }] as const;
const refused = (status: number, code: string) => [status, { error: code, code, request_id: 'r-1' }] as const;

describe('waiting for a request', () => {
  it('sends one long poll after the other, each with the cursor of the previous answer', async () => {
    answers = [none('c-1'), none('c-2'), found(captured('req_1'))];
    expect(await wait({ method: 'POST', pathContains: '/hook?a=1&b' })).toMatchObject({ id: 'req_1' });
    expect(asked.map(({ pathname }) => pathname)).toEqual(Array(3).fill('/api/tunnels/tun_a/requests/next'));
    expect(asked.map(({ searchParams }) => searchParams.get('after'))).toEqual([null, 'c-1', 'c-2']);
    expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toEqual({
      timeout_secs: '30',
      method: 'POST',
      path_contains: '/hook?a=1&b',
    });
  });

  it('asks the edge to wait no longer than the remaining time', async () => {
    answers = [none('c-1')];
    const clock = new FakeClock();
    server.on('request', () => void clock.advance(20_000));
    expect(await wait({ withinMs: 45_000 }, undefined, clock)).toBeNull();
    expect(asked.map(({ searchParams }) => searchParams.get('timeout_secs'))).toEqual(['30', '25', '5']);
  });

  it('continues when a known edge is briefly away, and fails when the edge never answered', async () => {
    answers = [none('c-1'), refused(503, 'EDGE_SHUTTING_DOWN'), found(captured('req_1'))];
    expect(await wait()).toMatchObject({ id: 'req_1' });
    expect(asked.at(-1)?.searchParams.get('after')).toBe('c-1');
    answers = [refused(503, 'EDGE_SHUTTING_DOWN')];
    await expect(wait()).rejects.toMatchObject({ code: 'EDGE_SHUTTING_DOWN' });
  });

  it('fails when the tunnel closes', async () => {
    answers = [none('c-1'), refused(410, 'TUNNEL_CLOSED')];
    await expect(wait()).rejects.toMatchObject({ code: 'TUNNEL_CLOSED' });
  });

  it('stops at once when the caller cancels, and closes the connection', async () => {
    answers = [[0, null]];
    const abort = new AbortController();
    const waiting = wait({}, abort.signal);
    await expect.poll(() => held.length, { timeout: 20_000 }).toBe(1);
    const closed = new Promise((resolve) => held[0]?.once('close', resolve));
    abort.abort(new Error('cancelled'));
    await expect(waiting).rejects.toThrow('cancelled');
    await closed;
  });

  it('polls the request list on an older edge, and returns the first matching request that finishes', async () => {
    const list = (...requests: CapturedRequest[]) => [200, { tunnel_id: 'tun_a', requests, truncated: false }] as const;
    const old = captured('req_1');
    const underWay = captured('req_2', { duration_ms: null, status: null });
    answers = [
      refused(404, 'API_NOT_FOUND'),
      list(underWay, old),
      list(captured('req_4', { path: '/other' }), captured('req_3', { method: 'GET' }), captured('req_2'), old),
    ];
    expect(await wait({ method: 'post', pathContains: 'hook' })).toMatchObject({ id: 'req_2' });
  });
});
