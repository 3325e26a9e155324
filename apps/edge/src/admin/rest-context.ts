// Shared parts of all REST routes: dependencies, authentication and access checks, and building blocks of route descriptions.
import type { HttpBindings } from '@hono/node-server';
import { createRoute, type OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi';
import {
  ACCOUNT_HEADER,
  apiError,
  type EdgeFlows,
  type EdgeRegion,
  type EdgeStatus,
  type LastAlert,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type Admission } from '@tunnel/rules/admission';
import { type CallerAddress } from '@tunnel/rules/net';
import { maySee, type Owner } from '@tunnel/rules/tunnels';
import { equalInConstantTime, type Logger, type Secret } from '@tunnel/runtime';
import type { Context, Handler, MiddlewareHandler } from 'hono';
import type { Backend } from '../backend/backend.ts';
import type { CaptureService } from '../capture/capture-service.ts';
import type { AuthFailures } from '../control/authentication.ts';
import type { PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { UdpListeners } from '../ingress/udp/udp-listeners.ts';
import { type GroupDirectory } from '../routing/group-directory.rules.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { CertificateSources } from './certificate-list.ts';
import type { GroupFeed } from './group-feed.ts';

export interface RestEnv {
  /** HTTP objects of Node.js. Empty if the request came without a socket. */
  Bindings: Partial<HttpBindings>;
  Variables: { requestId: string; caller: Owner; keyId: string };
}

export interface RestDependencies {
  readonly backend: Pick<Backend, 'verifyKey'>;
  /** Secret of the current run, known only to the platform. The bearer of the secret can act for any account. */
  readonly platformSecret: Secret;
  readonly tunnels: { get(tunnelId: string): Tunnel | undefined; values(): Iterable<Tunnel> };
  /** Directory of groups. Empty while load balancing is off. */
  readonly groups: Pick<GroupDirectory<Tunnel>, 'values' | 'at'>;
  /** Returns the result of a group's last alert to the URL of a member. Null if no alert was sent, or the alert is still in progress. */
  readonly lastAlertOf: (group: object, member: Tunnel) => LastAlert | null;
  readonly feed: GroupFeed;
  readonly udp: Pick<UdpListeners, 'at'>;
  readonly peers: Pick<PeerJoins, 'of' | 'dismiss'>;
  /** Returns the current datagram path between the edge and the client of a udp tunnel. */
  readonly datagramPathOf: (tunnel: Tunnel) => Pick<EdgeFlows, 'path' | 'reason'>;
  /** Closes a tunnel. Returns false if the tunnel was closed already. */
  readonly closeTunnel: (tunnelId: string, fault: Fault) => boolean;
  readonly captures: CaptureService;
  readonly certificates: CertificateSources;
  /** Number of operator rules, which run before the rules of a tunnel. */
  readonly operatorRules: number;
  readonly admission: Pick<Admission, 'tickets' | 'used' | 'limits'>;
  /** Returns the monotonic time, from the same clock as the times in `admission`. */
  readonly monotonic: () => number;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
  readonly status: () => Omit<EdgeStatus, 'ok' | 'version' | 'region_id'>;
  readonly region: Omit<EdgeRegion, 'current'>;
  /** Domain of the edge, under which http tunnels get their names. */
  readonly domain: string;
  readonly version: string;
  readonly authFailures: Pick<AuthFailures, 'blockedForSecs' | 'failed'>;
  readonly callerAddress: CallerAddress;
  readonly newRequestId: () => string;
  readonly logger: Logger;
}

// ---- who calls ----

const BEARER = /^bearer +(\S+) *$/i;

/** Key id for calls from the platform, which authenticates without an API key. */
const PLATFORM_KEY_ID = 'platform';

/**
 * Bearer check in front of every non-public route. Counts rejected keys by address. An address with too many failures is blocked before
 * its next key is checked.
 */
const requireKey = (deps: RestDependencies): MiddlewareHandler<RestEnv> => {
  const { backend, authFailures, platformSecret } = deps;
  return async (context, next) => {
    const token = BEARER.exec(context.req.header('authorization') ?? '')?.[1];
    // A request without a key is no attempt to guess a key, so the request is not counted as a failure.
    if (token === undefined) throw new Fault('AUTH_TOKEN_MISSING');
    if (equalInConstantTime(token, platformSecret.reveal())) {
      context.set('caller', { kind: 'account', accountId: accountAskedFor(context) });
      context.set('keyId', PLATFORM_KEY_ID);
      return next();
    }
    const address = visitorAddress(context, deps);
    const seconds = authFailures.blockedForSecs(address);
    if (seconds > 0) throw new Fault('AUTH_TOO_MANY_FAILURES', { seconds });
    const verdict = await backend.verifyKey(token);
    if (!verdict.ok) {
      if (!verdict.fault.retryable) authFailures.failed(address);
      throw verdict.fault;
    }
    context.set('caller', verdict.owner);
    context.set('keyId', verdict.keyId);
    await next();
  };
};

/** Returns the account for which the platform calls, and throws without an account. Only calls from the platform use the account header. */
const accountAskedFor = (context: Context<RestEnv>): string => {
  const accountId = context.req.header(ACCOUNT_HEADER) ?? '';
  if (accountId === '') throw new Fault('AUTH_TOKEN_INVALID');
  return accountId;
};

/** Returns the caller's address. A request without a socket comes from the platform in the same process and has an empty peer address. */
export const visitorAddress = (context: Context<RestEnv>, { callerAddress }: RestDependencies): string => {
  const peer = context.env.incoming?.socket.remoteAddress ?? '';
  return callerAddress(peer, context.req.header('x-forwarded-for'));
};

/**
 * Returns the tunnel with the id in the path. Throws TUNNEL_UNKNOWN even for another account's tunnel, so that its existence is not
 * revealed.
 */
export const findTunnel = ({ tunnels }: RestDependencies, context: Context<RestEnv>): Tunnel => {
  const tunnel = tunnels.get(context.req.param('id') ?? '');
  if (tunnel === undefined || !maySee(context.get('caller'), tunnel.owner)) throw new Fault('TUNNEL_UNKNOWN');
  return tunnel;
};

/** Rejects callers of a route other than the operator. */
export const requireOperator = (context: Context<RestEnv>): void => {
  if (context.get('caller').kind !== 'operator') throw new Fault('API_OPERATOR_ONLY');
};

/** Adds routes that require a key. The bearer check covers all methods of each path. */
export class KeyedRoutes {
  readonly #app: OpenAPIHono<RestEnv>;
  readonly #requireKey: MiddlewareHandler<RestEnv>;
  /** Paths with an installed bearer check. Routes with the same path share the check. */
  readonly #checked = new Set<string>();

  constructor(app: OpenAPIHono<RestEnv>, options: RestDependencies) {
    this.#app = app;
    this.#requireKey = requireKey(options);
  }

  readonly add: OpenAPIHono<RestEnv>['openapi'] = (route, handler) => {
    this.#check(route);
    return this.#app.openapi(route, handler);
  };

  /** Adds a route with a body that is generated at the caller's reading pace. A typed handler cannot return such a body. */
  addStream(route: RouteConfig, handler: Handler<RestEnv>): void {
    this.#app.openAPIRegistry.registerPath(route);
    this.#app.get(this.#check(route), handler);
  }

  /** Adds middleware between the bearer check and the handler of a route. Must be called before the route is added. */
  use(route: RouteConfig, middleware: MiddlewareHandler): void {
    this.#app.use(this.#check(route), middleware);
  }

  /** Installs the bearer check for a route. Returns the path in the router's notation. */
  #check(route: RouteConfig): string {
    const path = createRoute(route).getRoutingPath();
    if (!this.#checked.has(path)) this.#app.use(path, this.#requireKey);
    this.#checked.add(path);
    return path;
  }
}

// ---- the description ----

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

export const refused = (description: string) => json(apiError, description);

const keyRefusals = {
  401: refused('Missing or invalid API key.'),
  429: refused('Too many invalid API keys from this address, or too many concurrent replays. See Retry-After.'),
};

type Keyed<R extends RouteConfig> = Omit<R, 'responses'> & { readonly responses: typeof keyRefusals & R['responses'] };

/** Describes a route that requires a key. Adds the error responses for rejected keys, unless the route describes the same statuses. */
export const keyedRoute = <P extends string, R extends RouteConfig & { path: P }>(route: R): Keyed<R> => ({
  ...route,
  security: [{ bearer: [] }],
  responses: { ...keyRefusals, ...route.responses },
});

export const tunnelIdParam = z.object({ id: z.string().meta({ description: 'The tunnel_id.' }) });
export const unknownTunnel = refused('No such tunnel in your account.');
export const operatorOnly = refused('The admin token is required.');

/** Describes a route about a tunnel with the tunnel id as its only parameter. */
export const tunnelRoute = <
  M extends RouteConfig['method'],
  P extends `/api/tunnels/{id}${string}`,
  R extends RouteConfig['responses'],
>(route: {
  readonly method: M;
  readonly path: P;
  readonly summary: string;
  readonly responses: R;
}) =>
  keyedRoute({ ...route, request: { params: tunnelIdParam }, responses: { 404: unknownTunnel, ...route.responses } });
