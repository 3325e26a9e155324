// What the routes of the REST share: all that they are given, who calls and what they may reach, and what their descriptions share.
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
  /** Empty when the request came without a socket. */
  Bindings: Partial<HttpBindings>;
  Variables: { requestId: string; caller: Owner; keyId: string };
}

export interface RestDependencies {
  readonly backend: Pick<Backend, 'verifyKey'>;
  /** Of this run, and told to the platform alone: its bearer may ask as any account. */
  readonly platformSecret: Secret;
  readonly tunnels: { get(tunnelId: string): Tunnel | undefined; values(): Iterable<Tunnel> };
  /** Without a single one while load balancing is off. */
  readonly groups: Pick<GroupDirectory<Tunnel>, 'values' | 'at'>;
  /** What became of the last alert of a group to a URL of its members; null: there was none, or it is under way. */
  readonly lastAlertOf: (group: object, member: Tunnel) => LastAlert | null;
  readonly feed: GroupFeed;
  readonly udp: Pick<UdpListeners, 'at'>;
  readonly peers: Pick<PeerJoins, 'of' | 'dismiss'>;
  /** How datagrams go between the edge and the client of a udp tunnel, now. */
  readonly datagramPathOf: (tunnel: Tunnel) => Pick<EdgeFlows, 'path' | 'reason'>;
  /** false: it was gone already. */
  readonly closeTunnel: (tunnelId: string, fault: Fault) => boolean;
  readonly captures: CaptureService;
  readonly certificates: CertificateSources;
  /** How many rules of the operator come before a tunnel's own. */
  readonly operatorRules: number;
  readonly admission: Pick<Admission, 'tickets' | 'used' | 'limits'>;
  /** Of the clock that the admission is asked by. */
  readonly monotonic: () => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly status: () => Omit<EdgeStatus, 'ok' | 'version' | 'region_id'>;
  readonly region: Omit<EdgeRegion, 'current'>;
  /** Of the edge. */
  readonly domain: string;
  readonly version: string;
  readonly authFailures: Pick<AuthFailures, 'blockedForSecs' | 'failed'>;
  readonly callerAddress: CallerAddress;
  readonly newRequestId: () => string;
  readonly logger: Logger;
}

// ---- who calls ----

const BEARER = /^bearer +(\S+) *$/i;

/** The platform's calls are of no key. */
const PLATFORM_KEY_ID = 'platform';

/** The bearer check in front of every route that is not public. Refused keys are counted by address before the next one is looked at. */
const requireKey = (deps: RestDependencies): MiddlewareHandler<RestEnv> => {
  const { backend, authFailures, platformSecret } = deps;
  return async (context, next) => {
    const token = BEARER.exec(context.req.header('authorization') ?? '')?.[1];
    // A request without a key guesses nothing, so it is not counted.
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

/** The platform asks for one account or not at all; from everybody else the header means nothing. */
const accountAskedFor = (context: Context<RestEnv>): string => {
  const accountId = context.req.header(ACCOUNT_HEADER) ?? '';
  if (accountId === '') throw new Fault('AUTH_TOKEN_INVALID');
  return accountId;
};

/** Without a socket it is the platform in this process that asks. */
export const visitorAddress = (context: Context<RestEnv>, { callerAddress }: RestDependencies): string => {
  const peer = context.env.incoming?.socket.remoteAddress ?? '';
  return callerAddress(peer, context.req.header('x-forwarded-for'));
};

/** The tunnel whose id is in the path. Another account's tunnel is as unknown as none: its existence is nobody's business. */
export const findTunnel = ({ tunnels }: RestDependencies, context: Context<RestEnv>): Tunnel => {
  const tunnel = tunnels.get(context.req.param('id') ?? '');
  if (tunnel === undefined || !maySee(context.get('caller'), tunnel.owner)) throw new Fault('TUNNEL_UNKNOWN');
  return tunnel;
};

/** For routes of the operator: every other key is refused. */
export const requireOperator = (context: Context<RestEnv>): void => {
  if (context.get('caller').kind !== 'operator') throw new Fault('API_OPERATOR_ONLY');
};

/** Adds routes that need a key. The bearer check is in front of each of their paths, for all methods. */
export class KeyedRoutes {
  readonly #app: OpenAPIHono<RestEnv>;
  readonly #requireKey: MiddlewareHandler<RestEnv>;
  /** Paths that have their check: two routes of one path share it. */
  readonly #checked = new Set<string>();

  constructor(app: OpenAPIHono<RestEnv>, options: RestDependencies) {
    this.#app = app;
    this.#requireKey = requireKey(options);
  }

  readonly add: OpenAPIHono<RestEnv>['openapi'] = (route, handler) => {
    this.#check(route);
    return this.#app.openapi(route, handler);
  };

  /** For bodies that are read at the caller's pace, which a typed handler cannot return. */
  addStream(route: RouteConfig, handler: Handler<RestEnv>): void {
    this.#app.openAPIRegistry.registerPath(route);
    this.#app.get(this.#check(route), handler);
  }

  /** Behind the check and in front of the handler, so before the route is added. */
  use(route: RouteConfig, middleware: MiddlewareHandler): void {
    this.#app.use(this.#check(route), middleware);
  }

  /** Returns the path as the router has it. */
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

/** Describes a route that needs a key. The refusals of keys are added, unless the route has its own words for them. */
export const keyedRoute = <P extends string, R extends RouteConfig & { path: P }>(route: R): Keyed<R> => ({
  ...route,
  security: [{ bearer: [] }],
  responses: { ...keyRefusals, ...route.responses },
});

export const tunnelIdParam = z.object({ id: z.string().meta({ description: 'The tunnel_id.' }) });
export const unknownTunnel = refused('No such tunnel in your account.');
export const operatorOnly = refused('The admin token is required.');

/** Describes a route about one tunnel, which is asked for by nothing but its id. */
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
