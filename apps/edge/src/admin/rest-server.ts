// REST server of the edge on a separate port, with an OpenAPI document. Handlers are thin: KeyedRoutes authenticates every request, and
// the error mapper formats every error.
import { getRequestListener } from '@hono/node-server';
import { createRoute, type Hook, OpenAPIHono } from '@hono/zod-openapi';
import { edgeRegions, edgeStatus } from '@tunnel/contract';
import {
  boundBody,
  type ConnectionGate,
  callerGone,
  createErrorMapper,
  createUnroutedFault,
  HttpListener,
  type HttpListenerOptions,
  type ListenOn,
  operationIdOf,
  refusedAsJson,
  requestIdOf,
  sendError,
  unreadableFault,
} from '@tunnel/http-shell';
import type { MiddlewareHandler } from 'hono';
import { addCaptureRoutes } from './capture-routes.ts';
import { addCertificateRoutes } from './certificate-routes.ts';
import { addConnectionRoutes } from './connection-routes.ts';
import { addFlowRoutes } from './flow-routes.ts';
import { addGroupRoutes } from './group-routes.ts';
import { addPeerRoutes } from './peer-routes.ts';
import { addPolicyRoutes } from './policy-routes.ts';
import { json, KeyedRoutes, keyedRoute, type RestDependencies, type RestEnv } from './rest-context.ts';
import { addTunnelRoutes } from './tunnel-routes.ts';

/**
 * Maximum size of a request body. No REST request needs more.
 * @limit api: Request body, size (edge) | 413 `API_BODY_TOO_LARGE`
 */
const API_BODY_MAX_BYTES = 64 * 1024;
/** Timeout for receiving a complete request head. The connection is closed afterwards. */
const API_HEAD_TIMEOUT_MS = 15_000;
/** Timeout for receiving a complete request. The connection is closed afterwards. */
const API_REQUEST_TIMEOUT_MS = 30_000;

/**
 * Timeouts of the REST and metrics ports. A stop does not wait for requests, because requests last milliseconds and the edge has drained
 * before.
 */
export const API_BOUNDS: HttpListenerOptions['bounds'] = {
  headTimeoutMs: API_HEAD_TIMEOUT_MS,
  requestTimeoutMs: API_REQUEST_TIMEOUT_MS,
};

interface RestGates {
  readonly gate: ConnectionGate;
  /**
   * Gate of a separate loopback port for the platform of the same stack. Settings `api_host` and `[tls]`, and callers of the public port,
   * do not affect the loopback port.
   */
  readonly stackGate?: ConnectionGate | null;
}

export class RestServer extends HttpListener {
  readonly #ofStack: HttpListener | null;

  constructor(
    { tls = false, ...on }: Omit<ListenOn, 'key'> & { readonly tls?: boolean },
    { gate, stackGate = null }: RestGates,
    deps: RestDependencies,
  ) {
    const app = createRestApp(deps);
    const onRequest = getRequestListener((request, env) => app.fetch(request, env));
    const options = {
      on: { ...on, key: '[server] api_port' },
      onRequest: (request, response) => void onRequest(request, response),
      gate,
      kind: 'rest',
      bounds: API_BOUNDS,
      refused: refusedAsJson(deps.newRequestId),
    } satisfies HttpListenerOptions;
    super({ ...options, tls });
    this.#ofStack = stackGate === null ? null : new HttpListener({ ...options, gate: stackGate, on: STACK_LISTENER });
  }

  /**
   * Address of the loopback port for the platform of the same stack. Available only while the server runs. Null if the edge is in no
   * stack.
   */
  get stackAddress(): HttpListener['address'] | null {
    return this.#ofStack?.address ?? null;
  }

  override async start(): Promise<void> {
    await super.start();
    await this.#ofStack?.start();
  }

  override async stop(): Promise<void> {
    await this.#ofStack?.stop();
    await super.stop();
  }
}

const STACK_LISTENER: ListenOn = { host: '127.0.0.1', port: 0, key: 'listener for the platform' };

const statusRoute = createRoute({
  method: 'get',
  path: '/api/status',
  summary: 'Get the health and the load of the edge',
  security: [],
  responses: { 200: json(edgeStatus, 'Health and load.') },
});

const listRegionsRoute = keyedRoute({
  method: 'get',
  path: '/api/regions',
  summary: 'List the regions known to this edge',
  responses: { 200: json(edgeRegions, 'The regions.') },
});

const OPENAPI_PATH = '/api/openapi.json';

const createRestApp = (deps: RestDependencies): OpenAPIHono<RestEnv> => {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseUnreadable });
  const answerOf = createErrorMapper({ logger: deps.logger, failed: 'REST request failed' });
  const unrouted = createUnroutedFault(app, { headAfter: 'get' });
  app.use(giveRequestId(deps.newRequestId), boundBody(API_BODY_MAX_BYTES));
  app.onError((error, context) =>
    sendError(context, answerOf(callerGone(context, error) ?? error, context.get('requestId'))),
  );
  app.notFound((context) => sendError(context, answerOf(unrouted(context), context.get('requestId'))));
  addPublicRoutes(app, deps);
  const keyed = new KeyedRoutes(app, deps);
  addTunnelRoutes(keyed, deps);
  addFlowRoutes(keyed, deps);
  addPeerRoutes(keyed, deps);
  addPolicyRoutes(keyed, deps);
  addRegionRoutes(keyed, deps);
  addCaptureRoutes(keyed, deps);
  addGroupRoutes(keyed, deps);
  addConnectionRoutes(keyed, deps);
  addCertificateRoutes(keyed, deps);
  return app;
};

/** Rejects parameters with a type other than the described type, such as a repeated parameter. */
const refuseUnreadable: Hook<unknown, RestEnv, string, unknown> = (result) => {
  if (!result.success) throw unreadableFault(result.error.issues[0], result.target);
};

const addPublicRoutes = (app: OpenAPIHono<RestEnv>, { region, version, status }: RestDependencies): void => {
  app.openapi(statusRoute, (context) => context.json({ ok: true, version, region_id: region.id, ...status() }, 200));
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  // The OpenAPI document is generated per request: such requests are rare, and all routes exist by then.
  app.get(OPENAPI_PATH, (context) => context.json(edgeDocument(app, version), 200));
};

const addRegionRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  routes.add(listRegionsRoute, (context) => context.json([{ ...deps.region, current: true }], 200));
};

const giveRequestId =
  (newRequestId: () => string): MiddlewareHandler<RestEnv> =>
  async (context, next) => {
    const requestId = requestIdOf(context, newRequestId);
    context.set('requestId', requestId);
    context.header('x-request-id', requestId);
    context.header('cache-control', 'no-store');
    await next();
  };

// ---- the document: the descriptions of all routes, each with a name and a tag ----

const DESCRIPTION = `The current tunnels, requests, groups and certificates of an edge.

Send an API key or the admin token of the edge as \`Authorization: Bearer <KEY>\`. An API key gives access to resources of its account.
Errors have a message for people (\`error\`), a stable \`code\` for programs, and a \`request_id\` for bug reports.`;

/** Tags of the API document, by the path segment after /api. Requests, flows and other resources of a tunnel have the tag `tunnels`. */
const TAGS: Readonly<Record<string, string>> = {
  status: 'Health and load of the edge.',
  tunnels: 'Tunnels, captured requests, flows, peers and policy rules.',
  regions: 'Regions known to this edge.',
  groups: 'Load-balanced groups and the health of their members.',
  connections: 'Open connections and connection limits.',
  certificates: 'Certificates (admin token only).',
};

interface Operation {
  operationId?: string;
  tags?: string[];
}

const edgeDocument = (app: OpenAPIHono<RestEnv>, version: string) => {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Hatchway edge API',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache License 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  });
  for (const [path, methods] of Object.entries(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(methods as Record<string, Operation>)) {
      operation.operationId ??= operationIdOf(method, path);
      operation.tags ??= [path.split('/')[2] ?? ''];
    }
  }
  return document;
};
