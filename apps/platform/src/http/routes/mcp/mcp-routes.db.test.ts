import { Fault } from '@tunnel/errors';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CALLS_PER_MINUTE, type McpFixture, openMcp, request } from '../../../mcp/mcp.fixture.ts';
import { MCP_CALL_MAX_MS } from '../../../mcp/mcp-endpoint.ts';
import { revokeKey } from '../../../services/keys/keys.ts';
import { KNOWN_USER_MS } from '../../../services/shared/recent-lookups.ts';

let mcp: McpFixture;
beforeAll(async () => {
  mcp = await openMcp();
  await mcp.addTunnel(mcp.alice, 'tun_a');
});
// Resets call counters and cached accounts between tests.
beforeEach(() => mcp.clock.advance(60_000));
afterAll(() => mcp.stop());

const LIST = request('tools/list');
const METADATA = 'http://localhost:8080/.well-known/oauth-protected-resource/mcp';
const challengeOf = (answer: Response) => answer.headers.get('www-authenticate');
const errorOf = async (answer: Response) => ((await answer.json()) as { code: string }).code;

/** Opens a call that lasts until the caller disconnects. */
const waitOn = (bearer: string, signal: AbortSignal) =>
  mcp.post(
    bearer,
    request('tools/call', { name: 'wait_for_request', arguments: { tunnel: 'tun_a', timeout_secs: 300 } }),
    { signal },
  );

describe('/mcp returns 401', () => {
  it('without a bearer token, and names the metadata URL', async () => {
    const answer = await mcp.post(null, LIST);
    expect([answer.status, challengeOf(answer)]).toEqual([
      401,
      `Bearer resource_metadata="${METADATA}", scope="tunnels:read"`,
    ]);
    expect(await answer.json()).toEqual({
      error: 'no API key was sent',
      code: 'AUTH_TOKEN_MISSING',
      request_id: answer.headers.get('x-request-id'),
    });
    const basic = await mcp.post(null, LIST, { headers: { authorization: 'Basic dTpw' } });
    expect([basic.status, challengeOf(basic)?.includes('error=')]).toEqual([401, false]);
  });

  it.each([
    ['a key that nobody has', 'tnl_00000000000000000000000000000000000000', 'AUTH_TOKEN_INVALID'],
    ['a token that is none of ours', 'eyJhbGciOiJFZERTQSJ9.e30.c2ln', 'ACCESS_TOKEN_INVALID'],
    ['something with spaces in it', 'a b', 'ACCESS_TOKEN_INVALID'],
  ])('with error invalid_token for %s', async (_, bearer, code) => {
    const answer = await mcp.post(bearer, LIST);
    expect([answer.status, challengeOf(answer), await errorOf(answer)]).toEqual([
      401,
      `Bearer resource_metadata="${METADATA}", scope="tunnels:read", error="invalid_token"`,
      code,
    ]);
  });

  it("within two seconds of the key's revocation", async () => {
    const { id, token } = await mcp.newKey(mcp.alice);
    expect((await mcp.post(token, LIST)).status).toBe(200);
    await revokeKey(mcp.deps, mcp.alice, id);
    await mcp.clock.advance(2000);
    expect(await errorOf(await mcp.post(token, LIST))).toBe('AUTH_TOKEN_REVOKED');
  });
});

describe('/mcp returns 403', () => {
  it("for a foreign Origin before authentication, but serves the platform's origins", async () => {
    const from = (origin: string) => mcp.post(mcp.keys.alice, LIST, { headers: { origin } });
    const refused = await from('https://evil.example');
    expect([refused.status, await errorOf(refused)]).toEqual([403, 'ORIGIN_REFUSED']);
    expect((await mcp.post(null, LIST, { headers: { origin: 'null' } })).status).toBe(403);
    expect((await from('http://localhost:8080')).status).toBe(200);
    expect((await from(new URL(mcp.url).origin)).status).toBe(200);
  });

  it('for a suspended account, by key and by token', async () => {
    const set = (status: 'active' | 'suspended') =>
      mcp.deps.db.updateTable('users').set({ status }).where('id', '=', mcp.bob.userId).execute();
    await set('suspended');
    mcp.tokens.set('token', new Fault('ACCOUNT_SUSPENDED'));
    for (const bearer of [mcp.keys.bob, 'token']) {
      const answer = await mcp.post(bearer, LIST);
      expect([answer.status, challengeOf(answer), await errorOf(answer)]).toEqual([403, null, 'ACCOUNT_SUSPENDED']);
    }
    await set('active');
  });

  it("for a tool outside the token's scopes, names the required scope, and counts the call as refused", async () => {
    mcp.giveToken('reader', ['tunnels:read']);
    const answer = await mcp.call('reader', 'close_tunnel', { tunnel: 'tun_a' });
    expect([answer.status, challengeOf(answer), await errorOf(answer)]).toEqual([
      403,
      `Bearer error="insufficient_scope", scope="tunnels:close", resource_metadata="${METADATA}"`,
      'MCP_SCOPE_MISSING',
    ]);
    expect(await mcp.metrics.text()).toContain('tunnel_mcp_calls_total{tool="close_tunnel",outcome="refused"} 1');
  });
});

describe('/mcp rejects invalid messages', () => {
  it.each(['GET', 'DELETE', 'PUT', 'OPTIONS'])('with 405 for %s', async (method) => {
    const answer = await fetch(mcp.url, { method, headers: { authorization: `Bearer ${mcp.keys.alice}` } });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('with 413 over 256 KiB, with a declared length or chunked', async () => {
    const large = 'x'.repeat(256 * 1024 + 1);
    expect((await mcp.post(mcp.keys.alice, large)).status).toBe(413);
    const dripped = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(large));
        controller.close();
      },
    });
    const headers = { authorization: `Bearer ${mcp.keys.alice}`, 'content-type': 'application/json' };
    const answer = await fetch(mcp.url, { method: 'POST', headers, body: dripped, duplex: 'half' } as RequestInit);
    expect(answer.status).toBe(413);
    expect((await mcp.post(mcp.keys.alice, { ...LIST, pad: 'x'.repeat(250_000) })).status).not.toBe(413);
  });

  it('with 415 for a content type other than JSON', async () => {
    const headers = { 'content-type': 'text/plain' };
    expect((await mcp.post(mcp.keys.alice, LIST, { headers })).status).toBe(415);
  });

  it.each([
    ['half a message', '{"jsonrpc":"2.0"', -32_700],
    ['a batch', [LIST], -32_600],
    ['a number', '7', -32_600],
  ])('with 400 for %s', async (_, body, code) => {
    const answer = await mcp.post(mcp.keys.alice, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', error: { code }, id: null });
  });
});

describe('/mcp limits', () => {
  it('return 429 over the calls per minute of an account, counted across credentials', async () => {
    mcp.giveToken('token', ['tunnels:read']);
    for (let count = 0; count < CALLS_PER_MINUTE; count += 1) {
      expect((await mcp.post(count % 2 === 0 ? mcp.keys.alice : 'token', LIST)).status).toBe(200);
    }
    await mcp.clock.advance(20_000);
    const answer = await mcp.post(mcp.keys.alice, LIST);
    expect([answer.status, answer.headers.get('retry-after'), await errorOf(answer)]).toEqual([
      429,
      '40',
      'MCP_CALLS_THROTTLED',
    ]);
    expect((await mcp.post(mcp.keys.bob, LIST)).status).toBe(200);
    await mcp.clock.advance(40_000);
    expect((await mcp.post(mcp.keys.alice, LIST)).status).toBe(200);
  });

  it('return 429 over 20 open calls of an account; a disconnect frees a call and is passed on to the edge', async () => {
    const leaving = new AbortController();
    mcp.edges.answer = new Promise(() => {});
    const waiting = Array.from({ length: 20 }, () => waitOn(mcp.keys.alice, leaving.signal).catch(() => null));
    await eventually(() => expect(mcp.edges.asked).toHaveLength(20));
    const refused = await mcp.call(mcp.keys.alice, 'get_status');
    expect([refused.status, refused.headers.get('retry-after'), await errorOf(refused)]).toEqual([
      ...[429, '1', 'MCP_CALLS_OPEN'],
    ]);
    expect(await mcp.metrics.text()).toContain('tunnel_mcp_calls_total{tool="get_status",outcome="refused"} 1');
    expect((await mcp.post(mcp.keys.bob, LIST)).status).toBe(200);
    leaving.abort();
    await Promise.all(waiting);
    await eventually(async () => expect((await mcp.post(mcp.keys.alice, LIST)).status).toBe(200));
    const signals = mcp.edges.asked.map((question) => (question.at(-1) as { signal: AbortSignal }).signal);
    await eventually(() => expect(signals.every(({ aborted }) => aborted)).toBe(true));
  });

  it('end a hanging call after the maximum duration, which frees its place', async () => {
    mcp.edges.answer = new Promise(() => {});
    mcp.edges.asked.length = 0;
    const waiting = waitOn(mcp.keys.alice, new AbortController().signal).catch(() => 'cut');
    await eventually(() => expect(mcp.edges.asked).toHaveLength(1));
    await mcp.clock.advance(MCP_CALL_MAX_MS);
    expect(await waiting).toBe('cut');
  });
});

describe('a pending wait_for_request call', () => {
  const REQUEST = {
    id: 'req_1',
    tunnel_id: 'tun_a',
    at: '2026-01-01T00:00:00.000Z',
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
  };

  /** Returns the caller's response if a request arrives after `end` ran. */
  const heardAfter = async (bearer: string, end: () => Promise<void> | void) => {
    let arrive: (answer: object) => void = () => {};
    mcp.edges.answer = new Promise((resolve) => (arrive = resolve));
    const asked = mcp.edges.asked.length;
    const answer = waitOn(bearer, new AbortController().signal);
    await eventually(() => expect(mcp.edges.asked).toHaveLength(asked + 1));
    await end();
    await mcp.clock.advance(2000);
    arrive({ request: REQUEST, cursor: null });
    return (await answer).text();
  };

  it('returns no request after its key was revoked or its grant ended, but does with an expired token', async () => {
    const { id, token } = await mcp.newKey(mcp.alice);
    mcp.giveToken('app', ['requests:read']);
    expect(await heardAfter(token, () => {})).toContain('/hook');
    expect(await heardAfter('app', () => {})).toContain('/hook');
    const shutOut = await heardAfter(token, () => revokeKey(mcp.deps, mcp.alice, id));
    expect(shutOut).toContain('ACCESS_TOKEN_INVALID');
    const disconnected = await heardAfter('app', () => mcp.endGrants());
    expect([shutOut, disconnected].join()).not.toContain('/hook');
    expect(disconnected).toContain('ACCESS_TOKEN_INVALID');
  });
});

describe('an API key lookup of /mcp', () => {
  it('takes a turn of the network for a new key, later of its account, and none while cached', async () => {
    const { token } = await mcp.newKey(mcp.alice);
    const ask = async (): Promise<unknown[]> => {
      mcp.lookUps.splice(0);
      expect((await mcp.post(token, LIST)).status).toBe(200);
      return [...mcp.lookUps];
    };
    expect(await ask()).toEqual([{ kind: 'network', id: '127.0.0.1' }]);
    expect(await ask()).toEqual([]);
    await mcp.clock.advance(KNOWN_USER_MS);
    expect(await ask()).toEqual([{ kind: 'account', id: mcp.alice.userId }]);
  });
});
