// Waiting for a request, reading a request, and closing a tunnel: how the services use the responses of an edge.
import type { AwaitedRequest, CapturedRequest } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openPlatformFixture, type PlatformFixture } from '../../http/server/platform.fixture.ts';
import { awaitRequest } from './await-request.ts';
import { closeTunnel, findRequest, type NextRequest, type TunnelEdges } from './edge-state.ts';

let fixture: PlatformFixture;
beforeAll(async () => {
  fixture = await openPlatformFixture(() => {});
  const entry = (tunnel_id: string, protocol: string, isEnded = false) => ({
    user_id: fixture.alice.userId,
    tunnel_id,
    protocol,
    label: 'web',
    region_id: 'eu',
    registered_at: new Date(Date.UTC(2030, 5, 15)),
    ...(isEnded ? { unregistered_at: new Date() } : {}),
  });
  const entries = [entry('tun_web', 'http'), entry('tun_db', 'tcp'), entry('tun_old', 'http', true)];
  await fixture.database.db.insertInto('tunnel_log').values(entries).execute();
});
afterAll(() => fixture.close());

const requestOf = (id: string, more: Partial<CapturedRequest> = {}): CapturedRequest => ({
  id,
  tunnel_id: 'tun_web',
  at: '2030-06-15T12:00:00.000Z',
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

/** Default of every edge call: a call that a test does not expect rejects. */
const never = (): Promise<never> => Promise.reject(new Error('not expected'));
let edges: TunnelEdges;
beforeEach(() => {
  edges = {
    requests: never,
    request: never,
    nextRequest: never,
    closeTunnel: never,
    replay: never,
    healthEvents: never,
    policy: never,
    flows: never,
    peers: never,
    dismissPeer: never,
  };
});
const context = () => ({ ...fixture.deps, edges });
const stays = new AbortController().signal;

describe('waiting for a request', () => {
  const wait = (id = 'tun_web', withinSecs = 60, signal = stays, actor = fixture.alice) =>
    awaitRequest(context(), actor, id, { method: 'POST' }, { withinMs: withinSecs * 1000, signal });

  it('polls the edge for at most 30 s each, continuing from the previous cursor', async () => {
    const polls: NextRequest[] = [];
    const answers: ((answer: AwaitedRequest) => void)[] = [];
    edges = {
      ...edges,
      nextRequest: (regionId, tunnelId, accountId, filter) => {
        expect([regionId, tunnelId, accountId]).toEqual(['eu', 'tun_web', fixture.alice.userId]);
        polls.push(filter);
        return new Promise((resolve) => answers.push(resolve));
      },
    };
    const answer = wait();
    await eventually(() => expect(polls).toHaveLength(1));
    await fixture.clock.advance(30_000);
    answers[0]?.({ request: null, cursor: 'run-30000' });
    await eventually(() => expect(polls).toHaveLength(2));
    await fixture.clock.advance(10_000);
    answers[1]?.({ request: requestOf('req_1'), cursor: null });
    expect((await answer)?.id).toBe('req_1');
    expect(polls.map(({ after, withinSecs, method }) => [after, withinSecs, method])).toEqual([
      [undefined, 30, 'POST'],
      ['run-30000', 30, 'POST'],
    ]);
  });

  it('returns null when the time is up', async () => {
    edges = {
      ...edges,
      nextRequest: async (_region, _tunnel, _account, { withinSecs }) => {
        await fixture.clock.advance(withinSecs * 1000);
        return { request: null, cursor: 'run-1' };
      },
    };
    expect(await wait('tun_web', 61)).toBeNull();
  });

  it('polls the request list of an older edge, and returns the first request finished meanwhile', async () => {
    const lists = [
      [requestOf('req_under-way', { duration_ms: null }), requestOf('req_before')],
      [requestOf('req_get', { method: 'GET' }), requestOf('req_under-way', { duration_ms: null })],
      [requestOf('req_later'), requestOf('req_under-way'), requestOf('req_before')],
    ];
    let asked = 0;
    edges = {
      ...edges,
      nextRequest: () => Promise.reject(Fault.fromWire('API_NOT_FOUND', 'Not found')),
      requests: async () => ({
        tunnel_id: 'tun_web',
        requests: lists[asked++] ?? [],
        truncated: false,
        next_cursor: null,
      }),
    };
    const answer = wait();
    for (let looks = 1; looks < 3; looks += 1) {
      await eventually(() => expect([asked, fixture.clock.pendingTimers]).toEqual([looks, 1]));
      await fixture.clock.advance(1000);
    }
    expect((await answer)?.id).toBe('req_under-way');
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it('ends the pause between polls if the caller disconnects, and leaves no timer', async () => {
    const caller = new AbortController();
    edges = {
      ...edges,
      nextRequest: () => Promise.reject(Fault.fromWire('API_NOT_FOUND', 'Not found')),
      requests: async () => ({ tunnel_id: 'tun_web', requests: [], truncated: false, next_cursor: null }),
    };
    const answer = wait('tun_web', 60, caller.signal);
    const end = answer.catch(String);
    await eventually(() => expect(fixture.clock.pendingTimers).toBe(1));
    caller.abort(new Error('the caller has gone'));
    expect(await end).toBe('Error: the caller has gone');
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it('fails for ended, foreign and non-HTTP tunnels without a call to an edge', async () => {
    await expect(wait('tun_old')).rejects.toMatchObject({ code: 'TUNNEL_CLOSED' });
    await expect(wait('tun_db')).rejects.toMatchObject({ code: 'TUNNEL_NOT_HTTP' });
    await expect(wait('tun_web', 60, stays, fixture.bob)).rejects.toMatchObject({ code: 'TUNNEL_UNKNOWN' });
  });
});

describe('reading a request', () => {
  const find = (requestId = 'req_1', id = 'tun_web', actor = fixture.alice) =>
    findRequest(context(), actor, id, requestId);
  const failing = (code: 'API_NOT_FOUND' | 'TUNNEL_UNKNOWN' | 'CAPTURE_UNKNOWN' | 'EDGE_AWAY') => () =>
    Promise.reject(Fault.fromWire(code, 'as the edge says'));

  it("returns the edge's request, even after the end of the tunnel, and only to its account", async () => {
    edges = { ...edges, request: async (_region, _tunnel, requestId) => requestOf(requestId) };
    expect((await find()).id).toBe('req_1');
    expect((await find('req_2', 'tun_old')).id).toBe('req_2');
    await expect(find('req_1', 'tun_web', fixture.bob)).rejects.toMatchObject({ code: 'TUNNEL_UNKNOWN' });
  });

  it('uses the request list of an older edge', async () => {
    const requests = async () => ({
      tunnel_id: 'tun_web',
      requests: [requestOf('req_1')],
      truncated: false,
      next_cursor: null,
    });
    edges = { ...edges, request: failing('API_NOT_FOUND'), requests };
    expect((await find()).id).toBe('req_1');
    await expect(find('req_2')).rejects.toMatchObject({ code: 'CAPTURE_UNKNOWN' });
  });

  it.each([
    ['TUNNEL_UNKNOWN', 'CAPTURE_UNKNOWN'],
    ['CAPTURE_UNKNOWN', 'CAPTURE_UNKNOWN'],
    ['EDGE_AWAY', 'EDGE_AWAY'],
  ] as const)("maps the edge's error %s to %s", async (said, code) => {
    edges = { ...edges, request: failing(said) };
    await expect(find()).rejects.toMatchObject({ code });
  });
});

describe('closing a tunnel', () => {
  it('calls its edge and writes an audit entry', async () => {
    const asked: string[][] = [];
    edges = { ...edges, closeTunnel: async (...question) => void asked.push(question) };
    expect(await closeTunnel(context(), fixture.alice, 'tun_db')).toEqual({ tunnel_id: 'tun_db' });
    expect(asked).toEqual([['eu', 'tun_db', fixture.alice.userId]]);
    const rows = await fixture.database.db
      .selectFrom('audit_log')
      .selectAll()
      .where('action', '=', 'tunnel.closed')
      .execute();
    expect(rows).toMatchObject([
      { actor: `user:${fixture.alice.userId}`, user_id: fixture.alice.userId, details: { tunnel_id: 'tun_db' } },
    ]);
  });

  it('is refused for an ended or foreign tunnel, without an audit entry', async () => {
    await expect(closeTunnel(context(), fixture.alice, 'tun_old')).rejects.toMatchObject({ code: 'TUNNEL_CLOSED' });
    await expect(closeTunnel(context(), fixture.bob, 'tun_web')).rejects.toMatchObject({ code: 'TUNNEL_UNKNOWN' });
    const rows = await fixture.database.db
      .selectFrom('audit_log')
      .selectAll()
      .where('user_id', '=', fixture.bob.userId)
      .execute();
    expect(rows).toEqual([]);
  });
});
