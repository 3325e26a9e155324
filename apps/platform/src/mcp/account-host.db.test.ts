import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CapturedRequest, EdgeTunnel } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { SCOPES } from '@tunnel/mcp/tools';
import { eventually } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type McpFixture, openMcp, request } from './mcp.fixture.ts';

let mcp: McpFixture;
beforeAll(async () => {
  mcp = await openMcp();
  await mcp.addTunnel(mcp.alice, 'tun_a');
  await mcp.addTunnel(mcp.bob, 'tun_b');
});
beforeEach(async () => {
  await mcp.clock.advance(60_000);
  mcp.edges.asked.length = 0;
  mcp.edges.answer = null;
});
afterAll(() => mcp.stop());

const clients: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

const NAMES = [
  'close_tunnel',
  'get_request',
  'get_status',
  'get_tunnel',
  'get_usage',
  'list_keys',
  'list_pools',
  'list_requests',
  'list_tunnels',
  'replay_request',
  'wait_for_request',
];

const WHO = { name: 'test', version: '1' };
const initOf = (bearer: string) => ({ requestInit: { headers: { authorization: `Bearer ${bearer}` } } });

const connectModern = async (bearer: string): Promise<ModernClient> => {
  const client = new ModernClient(WHO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new ModernTransport(new URL(mcp.url), initOf(bearer)));
  clients.push(client);
  return client;
};

const connectOld = async (bearer: string): Promise<OldClient> => {
  const client = new OldClient(WHO);
  await client.connect(new OldTransport(new URL(mcp.url), initOf(bearer)) as never);
  clients.push(client);
  return client;
};

const LIVING: EdgeTunnel = {
  tunnel_id: 'tun_a',
  session_id: 'ses_1',
  name: 'web',
  protocol: 'http',
  label: 'web',
  region_id: 'local',
  public_url: 'http://web.localhost:8000',
  assigned_port: null,
  group: null,
  healthy: true,
  client_addr: '127.0.0.1:5',
  request_count: 3,
  bytes_proxied: 99,
  connected_since: '2030-06-15T12:00:00.000Z',
};

const CAPTURED: CapturedRequest = {
  id: 'req_1',
  tunnel_id: 'tun_a',
  at: '2030-06-15T12:00:00.000Z',
  method: 'POST',
  path: '/hook',
  status: 200,
  duration_ms: 3,
  request_headers: {},
  response_headers: {},
  request_size: 2,
  response_size: 0,
  request_body: '{}',
  response_body: null,
  aborted: false,
  error: null,
  replayable: true,
};

interface Told {
  readonly isError?: boolean;
  readonly structuredContent?: Record<string, unknown>;
  readonly content?: { readonly text?: string }[];
}

const told = async (tool: string, args: Record<string, unknown> = {}, bearer = mcp.keys.alice): Promise<Told> => {
  const answer = await mcp.call(bearer, tool, args);
  expect(answer.headers.get('content-type')).toBe('application/json');
  return ((await answer.json()) as { result: Told }).result;
};

describe('MCP clients', () => {
  it('of protocol 2026 and 2025 see the same tools and get the same results with an API key', async () => {
    const modern = await connectModern(mcp.keys.alice);
    const old = await connectOld(mcp.keys.alice);
    expect([modern.getNegotiatedProtocolVersion()]).toEqual(['2026-07-28']);
    const listed = await modern.listTools();
    const listedToOld = await old.listTools();
    expect(listed.tools.map(({ name }) => name)).toEqual(NAMES);
    expect(listedToOld.tools).toEqual(listed.tools);
    mcp.edges.answer = [LIVING];
    const call = { name: 'list_tunnels', arguments: {} };
    const shown = await modern.callTool(call);
    const shownToOld = await old.callTool(call);
    expect(shown.structuredContent).toEqual({ tunnels: [LIVING], truncated: false });
    expect([shownToOld.structuredContent, shownToOld.content]).toEqual([shown.structuredContent, shown.content]);
  });

  it('with a token see only the tools and resources of its scopes', async () => {
    mcp.giveToken('reader', ['tunnels:read']);
    const client = await connectModern('reader');
    const reading = ['get_status', 'get_tunnel', 'get_usage', 'list_keys', 'list_pools', 'list_tunnels'];
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(reading);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).not.toContain(
      'tunnel://requests/{tunnel}/{request_id}',
    );
    mcp.giveToken('all', SCOPES);
    expect((await (await connectModern('all')).listTools()).tools.map(({ name }) => name)).toEqual(NAMES);
  });

  it('that ask for progress get an unbuffered event stream, other clients plain JSON', async () => {
    mcp.edges.answer = { request: CAPTURED, cursor: null };
    const params = { name: 'wait_for_request', arguments: { tunnel: 'tun_a' } };
    const plain = await mcp.post(mcp.keys.alice, request('tools/call', params));
    expect(plain.headers.get('content-type')).toBe('application/json');
    const stream = await mcp.post(mcp.keys.alice, request('tools/call', { ...params, _meta: { progressToken: 7 } }));
    expect([stream.headers.get('content-type'), stream.headers.get('x-accel-buffering')]).toEqual([
      ...['text/event-stream', 'no'],
    ]);
    const text = await stream.text();
    expect(text).toContain('"notifications/progress"');
    expect(text).toContain('"id":"req_1"');
  });

  it('get cached tool lists with their own request ID, but not for irregular requests or other scopes', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': WHO,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const list = (id: unknown, method = 'tools/list', bearer = mcp.keys.alice, more = {}) =>
      mcp.post(
        bearer,
        { jsonrpc: '2.0', id, method: 'tools/list', params: { _meta: meta }, ...more },
        { headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method } },
      );
    const read = async (answer: Promise<Response>) => (await (await answer).json()) as Record<string, unknown>;
    const first = await read(list(1));
    expect(first).toMatchObject({ jsonrpc: '2.0', id: 1, result: { tools: expect.arrayContaining([]) } });
    expect(await read(list('"two'))).toEqual({ ...first, id: '"two' });
    expect((await list(3, 'tools/call')).status).toBe(400);
    expect(await read(list(null))).not.toHaveProperty('result');
    mcp.giveToken('few', ['tunnels:close']);
    expect(await read(list(4, 'tools/list', 'few'))).toMatchObject({ result: { tools: [{ name: 'close_tunnel' }] } });
  });

  it('get a JSON-RPC error for unknown methods and tools', async () => {
    const answer = await mcp.post(mcp.keys.alice, request('tunnels/burn'));
    expect(await answer.json()).toMatchObject({ error: { code: -32_601 } });
    const unknown = await mcp.call(mcp.keys.alice, 'open_tunnel', { protocol: 'http', local_port: 3000 });
    expect(await unknown.json()).toMatchObject({ error: { code: -32_602 } });
  });
});

describe('MCP tools', () => {
  it('show a tunnel as its edge reports it, or as logged while the edge is unavailable', async () => {
    mcp.edges.answer = LIVING;
    expect((await told('get_tunnel', { tunnel: 'tun_a' })).structuredContent).toEqual({ tunnel: LIVING });
    mcp.edges.answer = new Fault('EDGE_AWAY', { region: 'local' });
    const { structuredContent } = await told('get_tunnel', { tunnel: 'tun_a' });
    expect(structuredContent).toMatchObject({
      tunnel: { tunnel_id: 'tun_a', unregistered_at: null, region_id: 'local' },
    });
  });

  it("report the account's status and keys without any secret", async () => {
    const { structuredContent } = await told('get_status');
    expect(structuredContent).toMatchObject({
      account: { email: 'alice@example.com', status: 'active' },
      plan: 'free',
      limits: { tunnels: 3, calls_per_minute: 120 },
      active_tunnels: 1,
      regions: [],
      access: { kind: 'api_key', scopes: [...SCOPES] },
    });
    const keys = await told('list_keys');
    expect(keys.structuredContent).toMatchObject({ keys: [{ label: 'model' }] });
    expect(JSON.stringify([structuredContent, keys])).not.toMatch(/tnl_|token_hash/);
  });

  it('sum usage over the requested number of days', async () => {
    expect((await told('get_usage', { days: 2 })).structuredContent).toMatchObject({
      summary: { plan: 'free', active_tunnels: 1 },
      days: [{ date: '2030-06-14' }, { date: '2030-06-15' }],
    });
  });

  it("with side effects are audited with the caller's credential, unless refused", async () => {
    mcp.giveToken('app', SCOPES);
    mcp.edges.answer = CAPTURED;
    await told('replay_request', { tunnel: 'tun_a', request_id: 'req_1' }, 'app');
    await told('close_tunnel', { tunnel: 'tun_a' });
    await told('close_tunnel', { tunnel: 'tun_b' });
    const rows = await mcp.deps.db
      .selectFrom('audit_log')
      .select(['actor', 'details'])
      .where('action', '=', 'mcp.tool_called')
      .orderBy('id')
      .execute();
    const actor = `user:${mcp.alice.userId}`;
    expect(rows).toMatchObject([
      {
        actor,
        details: {
          tool: 'replay_request',
          tunnel_id: 'tun_a',
          request_id: 'req_1',
          by: 'connected_app',
          grant_id: 'grant',
          client_id: 'https://host.example/app',
        },
      },
      { actor, details: { tool: 'close_tunnel', tunnel_id: 'tun_a', by: 'api_key' } },
    ]);
    expect(rows).toHaveLength(2);
    expect(await mcp.metrics.text()).toContain('tunnel_mcp_calls_total{tool="replay_request",outcome="ok"} 1');
  });
});

describe("another account's tunnel", () => {
  it.each([
    ['get_tunnel', {}],
    ['close_tunnel', {}],
    ['list_requests', {}],
    ['get_request', { request_id: 'req_1' }],
    ['replay_request', { request_id: 'req_1' }],
    ['wait_for_request', { timeout_secs: 1 }],
  ])('is unknown to %s, and no edge is called', async (tool, args) => {
    const { isError, content } = await told(tool, { tunnel: 'tun_b', ...args });
    expect([isError, content?.[0]?.text]).toEqual([true, expect.stringMatching(/^TUNNEL_UNKNOWN: /)]);
    expect(mcp.edges.asked).toEqual([]);
  });

  it('appears in no list, resource or completion, even if an edge returns it', async () => {
    mcp.edges.answer = [{ ...LIVING, tunnel_id: 'tun_b' }];
    const client = await connectModern(mcp.keys.alice);
    const ref = { type: 'ref/resource', uri: 'tunnel://tunnels/{tunnel}' } as const;
    const seen = [
      await client.callTool({ name: 'list_tunnels', arguments: {} }),
      await client.callTool({ name: 'list_tunnels', arguments: { state: 'ended' } }),
      await client.readResource({ uri: 'tunnel://tunnels' }),
      await client.complete({ ref, argument: { name: 'tunnel', value: 'tun_' } }),
    ];
    expect(JSON.stringify(seen)).not.toContain('tun_b');
    expect(JSON.stringify(seen)).toContain('tun_a');
    for (const uri of ['tunnel://tunnels/tun_b', 'tunnel://requests/tun_b/req_1']) {
      await expect(client.readResource({ uri })).rejects.toThrow(/tun_b/);
    }
    // Edges receive only calls on behalf of the caller.
    expect(new Set(mcp.edges.asked.flat())).toEqual(new Set([mcp.alice.userId]));
  });
});

it('a streamed response and its pending edge call end when the caller disconnects', async () => {
  mcp.edges.answer = new Promise(() => {});
  const leaving = new AbortController();
  const params = { name: 'wait_for_request', arguments: { tunnel: 'tun_a' }, _meta: { progressToken: 1 } };
  const stream = await mcp.post(mcp.keys.alice, request('tools/call', params), { signal: leaving.signal });
  expect(stream.status).toBe(200);
  await eventually(() => expect(mcp.edges.asked).toHaveLength(1));
  leaving.abort();
  const polled = mcp.edges.asked[0]?.at(-1) as { signal: AbortSignal } | undefined;
  await eventually(() => expect(polled?.signal.aborted).toBe(true));
});
