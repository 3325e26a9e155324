// Access to /mcp: accepted credentials, rejected requests and their messages.
import { eventually } from '@tunnel/testkit';
import { beforeAll, expect, it } from 'vitest';
import { refusalOf } from '../platform/api-request.fixture.ts';
import { MCP_CALLS_PER_MINUTE, PATIENCE_MS, type Person } from '../platform/platform-harness.fixture.ts';
import type { McpHarness } from './mcp-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const LIST = { method: 'tools/list' };
/** Number of simultaneous calls. Sent one after the other, the calls would take longer than the minute of the limit on a busy machine. */
const AT_ONCE = 10;

export const platformRows = (harness: McpHarness): void => {
  let ann: Person;
  let key: string;
  beforeAll(async () => {
    ann = await harness.person();
    key = (await harness.newKey(ann)).token;
  });

  it(row('Platform MCP', 1), async () => {
    for (const protocolVersion of ['2025-06-18', '2025-11-25']) {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
      const { status, headers, result } = await harness.mcp(key, { method: 'initialize', params });
      expect([status, result['protocolVersion']]).toEqual([200, protocolVersion]);
      expect(headers.has('mcp-session-id')).toBe(false);
    }
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const discover = { method: 'server/discover', params: { _meta } };
    const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'server/discover' };
    const discovered = await harness.mcp(key, discover, modern);
    expect([discovered.status, discovered.text]).toEqual([200, expect.stringContaining('"2026-07-28"')]);
    const crossed = await harness.mcp(key, discover, { ...modern, 'mcp-method': 'tools/list' });
    expect([crossed.status, crossed.text]).toEqual([400, expect.stringContaining('-32020')]);
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const answer = await harness.ask(method, '/mcp', { token: key });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST']);
    }
    expect((await harness.mcp(key, LIST, { origin: 'https://elsewhere.example' })).status).toBe(403);
    const large = await harness.post('/mcp', { ...LIST, params: { padding: 'x'.repeat(256 * 1024) } }, key);
    expect(refusalOf(large)).toEqual([413, 'API_BODY_TOO_LARGE']);
  });

  it(row('Platform MCP', 2), async () => {
    const eager = (await harness.newKey(await harness.person())).token;
    // The test does not know when the minute of the limit ends, and calls counted before the end do not count afterwards, so it retries.
    const refused = await eventually(
      async () => {
        for (let sent = 0; sent <= MCP_CALLS_PER_MINUTE; sent += AT_ONCE) {
          const asked = Array.from({ length: AT_ONCE }, () => harness.mcp(eager, { method: 'ping' }));
          const answer = (await Promise.all(asked)).find(({ status }) => status !== 200);
          if (answer !== undefined) return answer;
        }
        throw new Error('none was refused');
      },
      { timeoutMs: PATIENCE_MS },
    );
    expect([refused.status, Number(refused.headers.get('retry-after')) >= 1]).toEqual([429, true]);
    expect((await harness.mcp(key, LIST)).status).toBe(200);
  });

  it(row('Platform MCP', 3), async () => {
    const challenge = `Bearer resource_metadata="${harness.issuer}/.well-known/oauth-protected-resource/mcp", scope="tunnels:read"`;
    const nobody = await harness.mcp(null, LIST);
    expect([nobody.status, nobody.headers.get('www-authenticate')]).toEqual([401, challenge]);
    expect(JSON.parse(nobody.text)).toMatchObject({ error: expect.any(String) });
    const { refresh_token } = await harness.connected(ann, 'tunnels:read');
    for (const bearer of ['x', `tnl_${'0'.repeat(38)}`, refresh_token]) {
      const answer = await harness.mcp(bearer, LIST);
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        `${challenge}, error="invalid_token"`,
      ]);
    }
  });

  it(row('Platform MCP', 4), async () => {
    const bob = await harness.person();
    const { token } = await harness.newKey(bob);
    const { access_token, refresh_token } = await harness.connected(bob, 'tunnels:read');
    const login = await harness.mcp(bob.token, LIST);
    expect([login.status, login.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('invalid_token'),
    ]);
    for (const path of ['/auth/me', '/usage', '/keys', '/billing', '/oauth/grants', '/load-balancing/groups']) {
      const answer = await harness.get(path, access_token);
      expect([path, ...refusalOf(answer)]).toEqual([path, 401, 'ACCESS_TOKEN_INVALID']);
    }
    expect((await harness.mcp(access_token, LIST)).status).toBe(200);
    await harness.suspend(bob.email);
    for (const bearer of [access_token, token]) {
      await eventually(async () => expect((await harness.mcp(bearer, LIST)).status).toBe(403), {
        timeoutMs: PATIENCE_MS,
      });
    }
    expect(await harness.refreshed(refresh_token)).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
  });

  it(row('Platform MCP', 5), async () => {
    const tools = async (bearer: string): Promise<string[]> =>
      ((await harness.mcp(bearer, LIST)).result['tools'] as { name: string }[]).map(({ name }) => name);
    const { access_token: reader } = await harness.connected(ann, 'tunnels:read');
    const read = ['get_status', 'get_tunnel', 'get_usage', 'list_keys', 'list_pools', 'list_tunnels'];
    const requests = ['get_request', 'list_requests', 'wait_for_request'];
    const replay = ['replay_request'];
    expect(await tools(reader)).toEqual(read);
    expect(await tools((await harness.connected(ann, 'requests:read')).access_token)).toEqual(requests);
    expect(await tools((await harness.connected(ann, 'requests:replay')).access_token)).toEqual(replay);
    expect(await tools((await harness.connected(ann, 'tunnels:close')).access_token)).toEqual(['close_tunnel']);
    expect(await tools(key)).toEqual([...read, ...requests, ...replay, 'close_tunnel'].sort());
    for (const [name, scope] of [
      ['close_tunnel', 'tunnels:close'],
      ['replay_request', 'requests:replay'],
      ['wait_for_request', 'requests:read'],
    ] as const) {
      const refused = await harness.mcp(reader, {
        method: 'tools/call',
        params: { name, arguments: { tunnel: 'tun_x' } },
      });
      const challenge = refused.headers.get('www-authenticate') ?? '';
      expect([name, refused.status]).toEqual([name, 403]);
      expect(challenge).toMatch(/^Bearer error="insufficient_scope", scope="[^"]*", resource_metadata="[^"]*"$/);
      // The challenge lists the missing scope besides the existing ones, because a host requests exactly the listed scopes and gives up
      // the others.
      expect(/scope="([^"]*)"/.exec(challenge)?.[1]?.split(' ')).toEqual(expect.arrayContaining([scope]));
    }
  });

  it(row('Platform MCP', 6), async () => {
    await harness.found(key, 'list_pools');
    await harness.tool(key, 'get_tunnel', { tunnel: 'tun_nobodys' });
    await harness.connected(ann, 'tunnels:read');
    const { access_token } = await harness.connected(ann, 'tunnels:read');
    await harness.mcp(access_token, { method: 'tools/call', params: { name: 'close_tunnel', arguments: {} } });
    const text = await (await fetch(harness.server.run.metrics_url)).text();
    expect(text).toMatch(/^tunnel_mcp_calls_total\{tool="list_pools",outcome="ok"\} [1-9]/m);
    expect(text).toMatch(/^tunnel_mcp_calls_total\{tool="get_tunnel",outcome="refused"\} [1-9]/m);
    expect(text).toMatch(/^tunnel_mcp_calls_total\{tool="close_tunnel",outcome="refused"\} [1-9]/m);
    expect(text).toMatch(/^tunnel_oauth_grants \d+$/m);
  });
};
