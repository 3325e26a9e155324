// The HTTP shell of the platform: what holds for every request and every answer. Routes are hung into it by their own files.
import { OpenAPIHono } from '@hono/zod-openapi';
import { EDGE_LINK_PATH, REQUEST_ID_PATTERN } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type Logger, randomId, type ServerConfig } from '@tunnel/runtime';
import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { HTTPException } from 'hono/http-exception';
import { matchedRoutes } from 'hono/route';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { isDatabaseAway } from '../db/database-away.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { callerAddressOf } from './caller-address.ts';
import { databaseAway, errorAnswer } from './error-mapper.ts';
import { refusalOf } from './known-methods.ts';
import type { PlatformApp, PlatformEnv } from './platform-env.ts';
import { problemOfJson, refuseUnreadable } from './read-request.ts';

export interface PlatformAppDeps {
  readonly logger: Logger;
  /** [platform] of server.toml. */
  readonly settings: Pick<ServerConfig['platform'], 'trusted_proxies' | 'public_url'>;
  /** false: the tables are not there yet, and nothing but /health is served. */
  readonly databaseReady?: () => boolean;
  /** A request met a database that is away. */
  readonly onDatabaseAway?: (error: unknown) => void;
  readonly newRequestId?: () => string;
}

export const newRequestId = (): string => randomId('req');

/** Pages of their own set their own policy over this one. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;
const HTTPS_FOR_A_YEAR = { 'strict-transport-security': 'max-age=31536000' } as const;

export const createPlatformApp = (deps: PlatformAppDeps): PlatformApp => {
  const app: PlatformApp = new OpenAPIHono<PlatformEnv>({ defaultHook: refuseUnreadable });
  app.use(stamp(deps), refuseUnknown(app), refuseUnready(deps), refuseLargeBody);
  app.onError((error, context) => answerError(context, error, deps));
  return app;
};

/** The id and address of a request, and the headers of every answer. */
const stamp = ({ settings, newRequestId: makeId = newRequestId }: PlatformAppDeps): MiddlewareHandler<PlatformEnv> => {
  const addressOf = callerAddressOf(settings.trusted_proxies);
  const headers = Object.entries({
    ...HEADERS,
    ...(settings.public_url.startsWith('https:') ? HTTPS_FOR_A_YEAR : {}),
  });
  return async (context, next) => {
    const given = context.req.header('x-request-id') ?? '';
    const requestId = REQUEST_ID_PATTERN.test(given) ? given : makeId();
    context.set('requestId', requestId);
    context.header('x-request-id', requestId);
    for (const [name, value] of headers) context.header(name, value);
    // Without a socket: a call in the process.
    const peer = (context.env as PlatformEnv['Bindings'] | undefined)?.incoming?.socket.remoteAddress ?? '';
    context.set('address', addressOf(peer, context.req.header('x-forwarded-for')));
    await next();
  };
};

/** Before anything asks for credentials: which paths and methods there are is in the public document. */
const refuseUnknown = (app: PlatformApp): MiddlewareHandler<PlatformEnv> => {
  const refusal = refusalOf(app);
  return async (context, next) => {
    // Middleware alone matched.
    if (matchedRoutes(context).at(-1)?.method === 'ALL') throw refusal(context);
    await next();
  };
};

const refuseUnready =
  ({ databaseReady = () => true }: PlatformAppDeps): MiddlewareHandler<PlatformEnv> =>
  async (context, next) => {
    if (!databaseReady() && !context.req.path.startsWith('/health')) throw databaseAway();
    await next();
  };

const limitOf = (path: string): number =>
  path.startsWith(EDGE_LINK_PATH) ? PLATFORM_BOUNDS.EDGE_LINK_BODY_MAX_BYTES : PLATFORM_BOUNDS.BODY_MAX_BYTES;

const bodyTooLarge = (limit: number) => (): never => {
  throw new Fault('API_BODY_TOO_LARGE', { limit });
};

const unannounced = new Map(
  [PLATFORM_BOUNDS.BODY_MAX_BYTES, PLATFORM_BOUNDS.EDGE_LINK_BODY_MAX_BYTES].map((limit) => [
    limit,
    bodyLimit({ maxSize: limit, onError: bodyTooLarge(limit) }),
  ]),
);

/** A body is judged by its announced length; one without is read up to the limit. A GET that announces one too. */
const refuseLargeBody: MiddlewareHandler<PlatformEnv> = async (context, next) => {
  const { path, method } = context.req;
  const limit = limitOf(path);
  const length = context.req.header('content-length');
  if (length !== undefined && Number(length) > limit) bodyTooLarge(limit)();
  if (length !== undefined || method === 'GET' || method === 'HEAD') return next();
  return unannounced.get(limit)?.(context, next);
};

const answerError = async (
  context: Context<PlatformEnv>,
  error: unknown,
  { logger, onDatabaseAway }: PlatformAppDeps,
): Promise<Response> => {
  const problem = error instanceof HTTPException && error.status === 400 ? await problemOfJson(context) : null;
  const told = problem === null ? error : new Fault('API_BAD_REQUEST', { reason: problem }, { cause: error });
  if (isDatabaseAway(error)) onDatabaseAway?.(error);
  const { status, headers, body } = errorAnswer(told, context.get('requestId'), logger);
  return context.json(body, status as ContentfulStatusCode, headers);
};
