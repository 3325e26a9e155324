// /mcp on a real socket with a separate database: two accounts with a key each, scripted edges, and access tokens defined by name. For
// tests only.

import type { Scope } from '@tunnel/mcp/tools';
import { systemClock } from '@tunnel/runtime';
import type { ApiCaller } from '../http/admission/call-queue.ts';
import { addMcpRoutes } from '../http/routes/mcp/mcp-routes.ts';
import { PlatformMetrics } from '../http/routes/operations/platform-metrics.ts';
import { openGate } from '../http/server/gate.fixture.ts';
import { HttpServer } from '../http/server/http-server.ts';
import { openPlatformFixture, type PlatformFixture } from '../http/server/platform.fixture.ts';
import { UserCache } from '../services/auth/users.ts';
import { createKey } from '../services/keys/keys.ts';
import { KeyUses, KnownKeys } from '../services/keys/verify-key.ts';
import type { McpBearer } from '../services/oauth/mcp-tokens.ts';
import type { UserActor } from '../services/shared/service-context.ts';
import { AccountHost } from './account-host.ts';
import { McpEndpoint } from './mcp-endpoint.ts';

export const CALLS_PER_MINUTE = 60;

export interface McpFixture extends PlatformFixture {
  readonly url: string;
  readonly metrics: PlatformMetrics;
  /** API keys of both accounts, by name. */
  readonly keys: { readonly alice: string; readonly bob: string };
  /** Access tokens by name, with their rights or their error. Tokens not in the map are invalid. */
  readonly tokens: Map<string, McpBearer | Error>;
  /** Callers that used a turn for a key lookup. */
  readonly lookUps: ApiCaller[];
  /** Defines an access token of a connected app of alice. */
  giveToken(token: string, scopes: readonly Scope[], actor?: UserActor): void;
  /** Disconnects all apps of all accounts. Tokens given out before keep a valid signature. */
  endGrants(): void;
  post(bearer: string | null, message: unknown, more?: PostOptions): Promise<Response>;
  /** Calls a tool as a client of protocol 2025 does, without progress. */
  call(bearer: string, tool: string, args?: object): Promise<Response>;
  /** Creates a further API key for the account. */
  newKey(actor: UserActor): Promise<{ readonly id: string; readonly token: string }>;
  /** Adds an open HTTP tunnel of the account. */
  addTunnel(actor: UserActor, tunnelId: string): Promise<void>;
  stop(): Promise<void>;
}

interface PostOptions {
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

export const openMcp = async (): Promise<McpFixture> => {
  let [port, metrics]: [() => number, PlatformMetrics | null] = [() => 0, null];
  const tokens = new Map<string, McpBearer | Error>();
  const lookUps: ApiCaller[] = [];
  let areAlive = true;
  const fixture = await openPlatformFixture((app, deps) => {
    const { db, clock, logger, settings, version } = deps;
    const admission = { refusals: { account: 0, network: 0, writes: 0, pipelined: 0 }, running: 0, waiting: 0 };
    metrics = new PlatformMetrics({ db, clock, admission, ordering: null, version: '0.0.0', droppedSpans: () => 0 });
    const counts = metrics;
    const endpoint = new McpEndpoint({
      clock,
      logger,
      version,
      callsPerMinute: CALLS_PER_MINUTE,
      hostFor: (caller) => new AccountHost({ ...deps, users: new UserCache(deps) }, caller),
      onCall: (tool, outcome) => counts.countMcpCall(tool, outcome),
    });
    addMcpRoutes(app, {
      settings,
      endpoint: () => Promise.resolve(endpoint),
      port: () => port(),
      keys: new KnownKeys({ ...deps, keyUses: new KeyUses({ db, clock, logger }) }),
      admission: {
        networkOf: (address) => ({ kind: 'network', id: address }),
        inTurn: (_, caller, work) => {
          lookUps.push(caller);
          return work();
        },
      },
      tokens: { check: async (token) => bearerOf(tokens.get(token)), isAlive: async () => areAlive },
    });
  });
  const { app, deps, alice, bob } = fixture;
  const { logger } = deps;
  const server = new HttpServer({ host: '127.0.0.1', port: 0, app, gate: openGate(), clock: systemClock, logger });
  await server.start();
  port = () => server.address.port;
  const url = `http://127.0.0.1:${server.address.port}/mcp`;
  const newKey: McpFixture['newKey'] = (actor) => createKey(deps, actor, { label: 'model' });
  const post: McpFixture['post'] = (bearer, message, { headers = {}, ...more } = {}) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...headers,
      },
      body: typeof message === 'string' ? message : JSON.stringify(message),
      ...more,
    });
  return {
    ...fixture,
    url,
    tokens,
    post,
    lookUps,
    metrics: metrics as unknown as PlatformMetrics,
    keys: { alice: (await newKey(alice)).token, bob: (await newKey(bob)).token },
    giveToken: (token, scopes, actor = alice) => {
      const grant = { grantId: 'grant', clientId: 'https://host.example/app', epoch: 0 };
      tokens.set(token, { userId: actor.userId, ...grant, scopes });
    },
    endGrants: () => {
      areAlive = false;
    },
    call: (bearer, name, args = {}) => post(bearer, request('tools/call', { name, arguments: args })),
    newKey,
    addTunnel: async ({ userId: user_id }, tunnel_id) => {
      const entry = { user_id, tunnel_id, protocol: 'http', label: tunnel_id, name: 'web', region_id: 'local' };
      const registered_at = new Date(deps.clock.now());
      await deps.db
        .insertInto('tunnel_log')
        .values({ ...entry, registered_at })
        .execute();
    },
    stop: async () => {
      await server.stop();
      await fixture.close();
    },
  };
};

const bearerOf = (known: McpBearer | Error | undefined): McpBearer | null => {
  if (known instanceof Error) throw known;
  return known ?? null;
};

export const request = (method: string, params: object = {}): object => ({ jsonrpc: '2.0', id: 1, method, params });
