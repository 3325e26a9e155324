// A host with tunnels and requests defined by the test, and clients of two protocol eras connected to its MCP server in memory.
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport, type Transport } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { ApiToken, CapturedRequest, EdgeTunnel, TunnelLogEntry } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { FakeClock } from '@tunnel/testkit';
import { type OpenTunnelInput, TOOL_NAMES, type ToolHost } from './tool-host.ts';
import { createToolServer, type ToolServerOptions } from './tool-server.ts';

export const tunnelOf = (fields: Partial<EdgeTunnel> = {}): EdgeTunnel => ({
  tunnel_id: 'tun_1',
  session_id: 'ses_1',
  name: 'web',
  protocol: 'http',
  label: 'web',
  public_url: 'http://web.localhost:8000',
  assigned_port: null,
  group: null,
  healthy: true,
  client_addr: '127.0.0.1:5000',
  region_id: 'local',
  request_count: 2,
  bytes_proxied: 100,
  connected_since: '2030-01-01T00:00:00.000Z',
  ...fields,
});

export const endedTunnelOf = (fields: Partial<TunnelLogEntry> = {}): TunnelLogEntry => ({
  id: '6c1b8f5e-21ad-4f0c-8d57-3c5a0b1d9e77',
  tunnel_id: 'tun_0',
  protocol: 'tcp',
  label: '20000',
  registered_at: '2029-12-31T00:00:00.000Z',
  unregistered_at: '2029-12-31T01:00:00.000Z',
  region_id: 'local',
  request_count: 1,
  bytes_proxied: 10,
  ...fields,
});

export const requestOf = (fields: Partial<CapturedRequest> = {}): CapturedRequest => ({
  id: 'req_1',
  tunnel_id: 'tun_1',
  at: '2030-01-01T00:00:01.000Z',
  method: 'POST',
  path: '/webhook?attempt=1',
  status: 500,
  duration_ms: 12.5,
  request_headers: { 'content-type': 'application/json' },
  response_headers: {},
  request_size: 2,
  response_size: 0,
  request_body: '{}',
  response_body: null,
  aborted: false,
  error: null,
  replayable: true,
  ...fields,
});

const keyOf = (label: string): ApiToken => ({
  id: `key-${label}`,
  label,
  token_hash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  created_at: '2030-01-01T00:00:00.000Z',
  last_used_at: null,
  scope: null,
  tier: 'free',
  tunnel_limit: 3,
  status: 'active',
  unlimited: false,
  tunnel_count: 2,
});

/** Tool host of a test. The test can change its tunnels and requests at any time. */
export class ScriptedHost implements ToolHost {
  tools: ToolHost['tools'] = new Set(TOOL_NAMES);
  tunnels: EdgeTunnel[] = [tunnelOf()];
  requests: CapturedRequest[] = [requestOf()];
  readonly opened: OpenTunnelInput[] = [];
  readonly closed: string[] = [];
  readonly replayed: string[] = [];
  /** Open and past waits in the order of the calls; `answer` resolves a wait. */
  readonly waits: { readonly withinMs: number; answer(request: CapturedRequest | null): void }[] = [];
  /** Error thrown by every call of the host while not null. */
  failure: Error | null = null;

  #one(tunnel: string): EdgeTunnel {
    if (this.failure !== null) throw this.failure;
    const found = this.tunnels.find(({ tunnel_id, name }) => tunnel_id === tunnel || name === tunnel);
    if (found === undefined) throw new Fault('TUNNEL_UNKNOWN');
    return found;
  }

  listTunnels: ToolHost['listTunnels'] = async ({ state, limit }) => {
    if (this.failure !== null) throw this.failure;
    const tunnels = state === 'active' ? this.tunnels : [endedTunnelOf()];
    return { tunnels: tunnels.slice(0, limit), truncated: tunnels.length > limit };
  };
  getTunnel: ToolHost['getTunnel'] = async (tunnel) => this.#one(tunnel);
  closeTunnel: ToolHost['closeTunnel'] = async (tunnel) => {
    const { tunnel_id } = this.#one(tunnel);
    this.closed.push(tunnel_id);
    return { tunnel_id };
  };
  listRequests: ToolHost['listRequests'] = async (tunnel) => {
    this.#one(tunnel);
    return { requests: this.requests, truncated: false };
  };
  getRequest: ToolHost['getRequest'] = async (tunnel, requestId) => {
    this.#one(tunnel);
    const found = this.requests.find(({ id }) => id === requestId);
    if (found === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return found;
  };
  replayRequest: ToolHost['replayRequest'] = async (tunnel, requestId, call) => {
    const original = await this.getRequest(tunnel, requestId, call);
    this.replayed.push(requestId);
    return { ...original, id: 'req_2', status: 200, replay_of: requestId };
  };
  waitForRequest: ToolHost['waitForRequest'] = async (tunnel, _filter, withinMs, { signal }) => {
    this.#one(tunnel);
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Fault('API_CALLER_GONE')), { once: true });
      this.waits.push({ withinMs, answer: resolve });
    });
  };
  listPools: ToolHost['listPools'] = async () => ({ groups: [], warnings: ['region far does not answer'] });
  getStatus: ToolHost['getStatus'] = async () => ({ account: { email: 'a@example.com' }, version: '1.2.3' });
  getUsage: ToolHost['getUsage'] = async (days = 30) => ({
    summary: {
      active_tunnels: 1,
      total_tunnels_30d: 2,
      total_requests_30d: 3,
      total_bytes_30d: 4,
      plan: 'free',
      tunnel_limit: 3,
    },
    days: Array.from({ length: days }, () => ({ date: '2030-01-01', tunnels: 0, requests: 0, bytes: 0 })),
  });
  listKeys: ToolHost['listKeys'] = async () => [keyOf('laptop')];
  openTunnel: NonNullable<ToolHost['openTunnel']> = async (input) => {
    if (this.failure !== null) throw this.failure;
    this.opened.push(input);
    return {
      name: input.name ?? 'http-3000',
      tunnel_id: 'tun_9',
      protocol: input.protocol,
      public_url: 'http://x.localhost:8000',
      local: `127.0.0.1:${input.local_port}`,
      inspect_url: null,
      warnings: [],
    };
  };
  runDoctor: NonNullable<ToolHost['runDoctor']> = async ({ progress }) => {
    progress(1, 1, 'config');
    const check = { id: 'config', title: 'settings', status: 'ok', detail: '', hint: '', ms: 1 };
    return { ok: true, server: 'localhost:4040', checks: [check] };
  };
}

/** Common interface of old and new clients, as far as the tests need. */
export interface AnyClient {
  callTool: ModernClient['callTool'];
  listTools: ModernClient['listTools'];
  listResources: ModernClient['listResources'];
  listResourceTemplates: ModernClient['listResourceTemplates'];
  readResource: ModernClient['readResource'];
  listPrompts: ModernClient['listPrompts'];
  getPrompt: ModernClient['getPrompt'];
  complete: ModernClient['complete'];
  close(): Promise<void>;
}

const INFO = { name: 'test', version: '1' };

export interface Served {
  readonly client: AnyClient;
  readonly clock: FakeClock;
  close(): Promise<void>;
}

/** Serves the host to a client in memory. `modern` speaks 2026-07-28 with the current SDK, `old` speaks 2025 with the SDK of that time. */
export const serve = async (
  host: ToolHost,
  era: 'modern' | 'old' = 'modern',
  options: Partial<ToolServerOptions> = {},
): Promise<Served> => {
  const clock = new FakeClock();
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const handle = serveStdio(() => createToolServer(host, { version: '1.2.3', clock, ...options }), { transport: ours });
  const client = era === 'modern' ? await connectModern(theirs) : await connectOld(theirs);
  const close = async (): Promise<void> => {
    await client.close();
    await handle.close();
  };
  return { client, clock, close };
};

const connectModern = async (transport: Transport): Promise<AnyClient> => {
  const client = new ModernClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(transport);
  return client;
};

const connectOld = async (transport: Transport): Promise<AnyClient> => {
  const client = new OldClient(INFO);
  await client.connect(transport as unknown as Parameters<OldClient['connect']>[0]);
  // In the old SDK, callTool has a result schema between the two arguments.
  const call = client.callTool.bind(client);
  const callTool: AnyClient['callTool'] = (params, options) => call(params, undefined, options) as never;
  return Object.assign(client as unknown as AnyClient, { callTool });
};
