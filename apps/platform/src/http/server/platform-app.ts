// The HTTP app of the platform: checks and headers common to every request and response. Routes are added in their own files.
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
import { isDownloadPath } from '../routes/downloads/download-routes.ts';
import { isDashboardPath } from '../routes/pages/dashboard-routes.ts';
import { isGuidePath } from '../routes/pages/guide-routes.ts';
import { headersOfEveryAnswer, newRequestId } from '../shared/every-answer.ts';
import { CHALLENGE_PATH, MCP_PATH } from '../shared/paths.ts';
import type { PlatformApp, PlatformEnv } from '../shared/platform-env.ts';
import { createRequestSource, type RequestSource } from '../shared/trusted-edge-header.ts';
import { ownAuthority } from './own-authorities.rules.ts';
import { keepBytes, problemOfJson, refuseUnreadable } from './read-request.ts';
import type { RequestSpans } from './request-spans.ts';

/** Maximum size of the body of an edge's call. A batch has up to 1000 journal records. */
const EDGE_LINK_BODY_MAX_BYTES = 2 * 1024 * 1024;
/**
 * Maximum size of a message to /mcp. The arguments of tools are short.
 * @limit mcp: Platform: message, size | 413 `API_BODY_TOO_LARGE`
 */
const MCP_BODY_MAX_BYTES = 256 * 1024;

export interface PlatformAppOptions {
  readonly logger: Logger;
  /** The section [platform] of server.toml. */
  readonly settings: Pick<ServerConfig['platform'], 'trusted_proxies' | 'public_url' | 'host'>;
  /** Secret with which the edge in front proves that it forwards a visitor's request. Absent without such an edge. */
  readonly edgeSecret?: Secret | undefined;
  /** Returns false until the database tables exist. Only /health and the dashboard's files are served before. */
  readonly databaseReady?: () => boolean;
  /** Called when a request finds the database unavailable. */
  readonly onDatabaseAway?: (error: DatabaseAway) => void;
  /** Called when an account has reached its daily limit of creations. */
  readonly onWritesRefused?: ((userId: string) => void) | undefined;
  readonly newRequestId?: () => string;
  /** Spans of requests. Null without telemetry. */
  readonly spans?: Pick<RequestSpans, 'routed'> | null;
}

export const createPlatformApp = (deps: PlatformAppOptions): PlatformApp => {
  const app: PlatformApp = new OpenAPIHono<PlatformEnv>({ defaultHook: refuseUnreadable });
  app.use(guard(app, deps));
  const answerOf = platformErrorMapper(deps.logger);
  app.onError((error, context) => answerError(context, error, { answerOf, ...deps }));
  return app;
};

/** Middleware for every request. A single step instead of a chain, because a link of a chain costs as much as all checks here. */
const guard = (app: PlatformApp, deps: PlatformAppOptions): MiddlewareHandler<PlatformEnv> => {
  const stamp = stampOf(deps);
  const unrouted = createUnroutedFault(app, { headAfter: 'all' });
  const { databaseReady = () => true, spans = null } = deps;
  const refuseOtherHosts = hostCheck(deps.settings);
  const sourceOf = createRequestSource(deps);
  return (context, next) => {
    const { incoming } = socketOf(context);
    const source = sourceOf(incoming);
    stamp(context, source);
    // The edge in front forwards only requests for the platform's own host.
    if (source.visitor === null) refuseOtherHosts(context);
    // If only middleware matched, the path or method does not exist. Answered before credentials are checked, because the existing paths
    // and methods are public.
    const route = matchedRoutes(context).at(-1);
    if (route?.method === 'ALL') throw unrouted(context);
    if (spans !== null && incoming !== undefined && route !== undefined) spans.routed(incoming, route.path);
    if (!databaseReady() && needsDatabase(context.req.path)) throw notReady();
    return refuseLargeBody(context, next);
  };
};

const BY_ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])(:\d{1,5})?$/i;

/** Maximum length of a host quoted in a response, to keep the response a single line. */
const HOST_SHOWN_CHARACTERS = 100;

/**
 * Creates the check of the Host header. A foreign page that reaches the platform by a name pointing here is refused. Exempt are probes,
 * which come by address; edges, which have a credential and `platform_url`; certificate authorities; and calls within the process.
 */
const hostCheck = ({ public_url, host: listensOn }: PlatformAppOptions['settings']) => {
  const { protocol, hostname: host, port } = new URL(public_url);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const isOwn = ownAuthority({ published: { host, port: Number(port || defaultPort) }, defaultPort, listensOn });
  // The local simulator calls the listen address. Its webhooks are signed, and no attacker can use an address as a host name.
  const isOwnOfWebhooks = (authority: string): boolean => BY_ADDRESS.test(authority) || isOwn(authority);
  // Cache of the last accepted host, which is the same for nearly all requests.
  let lastOwn: string | undefined;
  return (context: Context<PlatformEnv>): void => {
    const { incoming } = socketOf(context);
    if (incoming === undefined || isForAnyHost(context.req.path)) return;
    const { host: named = '' } = incoming.headers;
    // A target with a host (RFC 9112, 3.2.2) takes precedence over the header. A browser never sends a target and a header that
    // contradict.
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

/** Returns the fault for a request with a target and host that form no valid URL. */
export const noAddress = (cause?: Error): Fault =>
  new Fault('API_BAD_REQUEST', { reason: 'the request URL is not valid' }, cause === undefined ? {} : { cause });

const isForAnyHost = (path: string): boolean =>
  path === '/health' ||
  path === '/health/db' ||
  path.startsWith(`${EDGE_LINK_PATH}/`) ||
  path.startsWith(CHALLENGE_PATH);

/**
 * Returns true if a path needs the database. The dashboard's page itself shows that the database is unavailable, and the guide explains
 * what to do then.
 */
const needsDatabase = (path: string): boolean =>
  !path.startsWith('/health') && !isDashboardPath(path) && !isGuidePath(path) && !isDownloadPath(path);

/** Sets the id and the caller's address of a request, and the common headers of the response. */
const stampOf = ({ settings, edgeSecret, newRequestId: makeId = newRequestId }: PlatformAppOptions) => {
  const headersOf = headersOfEveryAnswer({ publicUrl: settings.public_url, edgeSecret });
  return (context: Context<PlatformEnv>, source: RequestSource): void => {
    const requestId = requestIdOf(context, makeId);
    const { outgoing } = socketOf(context);
    context.set('requestId', requestId);
    context.set('address', source.address);
    // With a socket, headers are written directly to Node.js, because headers set through hono make a response several times as
    // expensive.
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

/** Creates the platform's error mapper. Besides faults, the mapper knows the error of a body that is not JSON. */
export const platformErrorMapper = (logger: Logger): ErrorMapper =>
  createErrorMapper({
    logger,
    failed: 'a request failed',
    known: (error) => {
      const isMediaType = error instanceof HTTPException && error.status === 415;
      return isMediaType ? new Fault('API_MEDIA_TYPE', {}, { cause: error }) : null;
    },
    // The database watch logs an unavailable database once, so that failed requests do not log it again.
    // Strangers could fill the log with requests for downloads that fail; the routes log the reason.
    isToldElsewhere: ({ code }) => code === 'DATABASE_AWAY' || code.startsWith('DOWNLOAD'),
  });
