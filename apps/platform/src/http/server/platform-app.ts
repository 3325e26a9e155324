// The HTTP shell of the platform: what holds for every request and every answer. Routes are hung into it by their own files.
import { OpenAPIHono } from '@hono/zod-openapi';
import type { ServerConfig } from '@tunnel/config/server';
import { BILLING_WEBHOOK_PATH, EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import {
  boundBody,
  callerGone,
  createErrorMapper,
  createUnroutedFault,
  type ErrorMapper,
  requestIdOf,
  sendError,
  socketOf,
} from '@tunnel/http-shell';
import type { Logger, Secret } from '@tunnel/runtime';
import type { Context, MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { matchedRoutes } from 'hono/route';
import { DatabaseAway, notReady } from '../../db/database-away.ts';
import { LIMITS } from '../../limits.ts';
import { isDashboardPath } from '../routes/pages/dashboard-routes.ts';
import { headersOfEveryAnswer, newRequestId } from '../shared/every-answer.ts';
import { CHALLENGE_PATH, MCP_PATH } from '../shared/paths.ts';
import type { PlatformApp, PlatformEnv } from '../shared/platform-env.ts';
import { createRequestSource, type RequestSource } from '../shared/trusted-edge-header.ts';
import { ownAuthority } from './own-authorities.rules.ts';
import { keepBytes, problemOfJson, refuseUnreadable } from './read-request.ts';

/** Of an edge's call: a batch holds up to 1000 records of its journal. */
const EDGE_LINK_BODY_MAX_BYTES = 2 * 1024 * 1024;
/**
 * Of a message to /mcp: arguments of tools are short.
 * @limit mcp: Platform: message, size | 413 `API_BODY_TOO_LARGE`
 */
const MCP_BODY_MAX_BYTES = 256 * 1024;

export interface PlatformAppOptions {
  readonly logger: Logger;
  /** [platform] of server.toml. */
  readonly settings: Pick<ServerConfig['platform'], 'trusted_proxies' | 'public_url' | 'host'>;
  /** By which the edge in front shows that a request is one of its visitors'; absent: there is no such edge. */
  readonly edgeSecret?: Secret | undefined;
  /** false: the tables are not there yet, and nothing but /health and the dashboard's files is served. */
  readonly databaseReady?: () => boolean;
  /** A request met a database that is away. */
  readonly onDatabaseAway?: (error: DatabaseAway) => void;
  /** An account was refused to make more on this day. */
  readonly onWritesRefused?: ((userId: string) => void) | undefined;
  readonly newRequestId?: () => string;
}

export const createPlatformApp = (deps: PlatformAppOptions): PlatformApp => {
  const app: PlatformApp = new OpenAPIHono<PlatformEnv>({ defaultHook: refuseUnreadable });
  app.use(guard(app, deps));
  const answerOf = platformErrorMapper(deps.logger);
  app.onError((error, context) => answerError(context, error, { answerOf, ...deps }));
  return app;
};

/** What every request passes. One step, not a chain of them: each link of a chain costs as much as all that is done here. */
const guard = (app: PlatformApp, deps: PlatformAppOptions): MiddlewareHandler<PlatformEnv> => {
  const stamp = stampOf(deps);
  const unrouted = createUnroutedFault(app, { headAfter: 'all' });
  const { databaseReady = () => true } = deps;
  const refuseOtherHosts = hostCheck(deps.settings);
  const sourceOf = createRequestSource(deps);
  return (context, next) => {
    const source = sourceOf(socketOf(context).incoming);
    stamp(context, source);
    // The edge brings nothing here but the platform's own host.
    if (source.visitor === null) refuseOtherHosts(context);
    // Middleware alone matched. Before anything asks for credentials: what paths and methods there are is public.
    if (matchedRoutes(context).at(-1)?.method === 'ALL') throw unrouted(context);
    if (!databaseReady() && needsDatabase(context.req.path)) throw notReady();
    return refuseLargeBody(context, next);
  };
};

const BY_ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])(:\d{1,5})?$/i;

/** Quoted in an answer: a line, not a page. */
const HOST_SHOWN_CHARACTERS = 100;

/**
 * A page of somebody else reaches us by a name of its own that points here, and is not answered. Not asked of probes, which come by
 * address, of edges, which have a credential and `platform_url`, of authorities, and of calls in the process.
 */
const hostCheck = ({ public_url, host: listensOn }: PlatformAppOptions['settings']) => {
  const { protocol, hostname: host, port } = new URL(public_url);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const isOwn = ownAuthority({ published: { host, port: Number(port || defaultPort) }, defaultPort, listensOn });
  // The simulator beside us calls by the address that we listen on. Its webhooks are signed, and an address is no stranger's name.
  const isOwnOfWebhooks = (authority: string): boolean => BY_ADDRESS.test(authority) || isOwn(authority);
  // Nearly all requests have one and the same.
  let lastOwn: string | undefined;
  return (context: Context<PlatformEnv>): void => {
    const { incoming } = socketOf(context);
    if (incoming === undefined || isForAnyHost(context.req.path)) return;
    const { host: named = '' } = incoming.headers;
    // A target with a host of its own (RFC 9112, 3.2.2) counts before the header; a browser sends neither one against the other.
    const target = incoming.url?.startsWith('/') === false ? new URL(context.req.url).host : named;
    if (named === lastOwn && target === named) return;
    if (target === '') throw noAddress();
    const isOwnHere = context.req.path === BILLING_WEBHOOK_PATH ? isOwnOfWebhooks : isOwn;
    for (const authority of [target, named]) {
      if (!isOwnHere(authority)) throw new Fault('API_WRONG_HOST', { host: authority.slice(0, HOST_SHOWN_CHARACTERS) });
    }
    if (isOwnHere === isOwn) lastOwn = named;
  };
};

/** Of a request whose target and host make no URL. */
export const noAddress = (cause?: Error): Fault =>
  new Fault('API_BAD_REQUEST', { reason: 'the request URL is not valid' }, cause === undefined ? {} : { cause });

const isForAnyHost = (path: string): boolean =>
  path === '/health' ||
  path === '/health/db' ||
  path.startsWith(`${EDGE_LINK_PATH}/`) ||
  path.startsWith(CHALLENGE_PATH);

/** The page of the dashboard says itself what is away. */
const needsDatabase = (path: string): boolean => !path.startsWith('/health') && !isDashboardPath(path);

/** The id and address of a request, and the headers of every answer. */
const stampOf = ({ settings, edgeSecret, newRequestId: makeId = newRequestId }: PlatformAppOptions) => {
  const headersOf = headersOfEveryAnswer({ publicUrl: settings.public_url, edgeSecret });
  return (context: Context<PlatformEnv>, source: RequestSource): void => {
    const requestId = requestIdOf(context, makeId);
    const { outgoing } = socketOf(context);
    context.set('requestId', requestId);
    context.set('address', source.address);
    // Straight to node where there is a socket: headers that go through hono make its answers several times as dear.
    const write = (name: string, value: string): void => {
      if (outgoing === undefined) context.header(name, value);
      else outgoing.setHeader(name, value);
    };
    write('x-request-id', requestId);
    for (const [name, value] of headersOf(source)) write(name, value);
  };
};

const ANY_BODY = boundBody(LIMITS.BODY_MAX_BYTES);
const BATCH = boundBody(EDGE_LINK_BODY_MAX_BYTES);
const WEBHOOK = boundBody(LIMITS.WEBHOOK_BODY_MAX_BYTES);

const MESSAGE = boundBody(MCP_BODY_MAX_BYTES);

const boundOf = (path: string): typeof ANY_BODY => {
  if (path === MCP_PATH) return MESSAGE;
  if (path === BILLING_WEBHOOK_PATH) return WEBHOOK;
  return path.startsWith(EDGE_LINK_PATH) ? BATCH : ANY_BODY;
};

const refuseLargeBody: MiddlewareHandler<PlatformEnv> = (context, next) => {
  const { path, method } = context.req;
  const bound = boundOf(path);
  if (method === 'GET' || method === 'HEAD') return bound(context, next);
  return bound(context, () => {
    keepBytes(context);
    return next();
  });
};

const answerError = async (
  context: Context<PlatformEnv>,
  error: unknown,
  { answerOf, onDatabaseAway, onWritesRefused, logger }: PlatformAppOptions & { answerOf: ErrorMapper },
): Promise<Response> => {
  const requestId = context.get('requestId');
  if (error instanceof DatabaseAway) onDatabaseAway?.(error);
  if (error instanceof Fault && error.code === 'API_WRITES_PER_DAY') onWritesRefused?.(context.get('actor').userId);
  const gone = callerGone(context, error);
  if (gone !== null) {
    logger.debug({ request_id: requestId, path: context.req.path, err: error }, 'a caller disconnected');
    return sendError(context, answerOf(gone, requestId));
  }
  const problem = error instanceof HTTPException && error.status === 400 ? await problemOfJson(context) : null;
  const told = problem === null ? error : new Fault('API_BAD_REQUEST', { reason: problem }, { cause: error });
  return sendError(context, answerOf(told, requestId));
};

/** What the platform's error mapper knows besides faults: a body that is not JSON. */
export const platformErrorMapper = (logger: Logger): ErrorMapper =>
  createErrorMapper({
    logger,
    failed: 'a request failed',
    known: (error) => {
      const isMediaType = error instanceof HTTPException && error.status === 415;
      return isMediaType ? new Fault('API_MEDIA_TYPE', {}, { cause: error }) : null;
    },
    // A database that is away is told of once, by whoever watches it, not by every request that meets it.
    isToldElsewhere: ({ code }) => code === 'DATABASE_AWAY',
  });
