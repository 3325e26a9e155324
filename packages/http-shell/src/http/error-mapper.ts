// Converts errors to HTTP responses; every response to an error is created here. Also creates the error for a request without a route.
import { type ApiError, apiErrorHeaders, apiErrorOf } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Logger } from '@tunnel/runtime';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { TrieRouter } from 'hono/router/trie-router';
import type { ContentfulStatusCode } from 'hono/utils/http-status';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: ApiError;
}

export type ErrorMapper = (error: unknown, requestId: string) => ErrorAnswer;

export interface ErrorMapperOptions {
  readonly logger: Logger;
  /** Log message for errors of this server (status 500 and above). */
  readonly failed: string;
  /** Converts errors that only the app knows to a Fault. Returns null for all other errors. */
  readonly known?: (error: unknown) => Fault | null;
  /** Returns true for server errors that are already logged elsewhere. */
  readonly isToldElsewhere?: (fault: Fault) => boolean;
}

export const createErrorMapper = (options: ErrorMapperOptions): ErrorMapper => {
  const { logger, failed, known = () => null, isToldElsewhere = () => false } = options;
  return (error, requestId) => {
    const fault = error instanceof Fault ? error : (known(error) ?? faultOf(error));
    if (fault.status >= 500 && !isToldElsewhere(fault)) {
      logger.error({ request_id: requestId, code: fault.code, err: fault.cause ?? fault.internal }, failed);
    }
    return { status: fault.status, headers: apiErrorHeaders(fault), body: apiErrorOf(fault, requestId) };
  };
};

const faultOf = (error: unknown): Fault => {
  // Hono and its adapter throw these errors for unreadable requests.
  if (error instanceof HTTPException && error.status < 500) {
    return new Fault('API_BAD_REQUEST', { reason: 'the request cannot be read' }, { cause: error });
  }
  return Fault.from(error);
};

export const sendError = (context: Context, { status, headers, body }: ErrorAnswer): Response =>
  context.json(body, status as ContentfulStatusCode, headers);

interface Routes {
  readonly routes: readonly { readonly method: string; readonly path: string }[];
}

/**
 * Creates the error for a request without a route: 405 with the methods of the path, or 404. The table of methods is built from the app's
 * routes on the first call, when all routes have been registered. `headAfter` keeps the position of HEAD in Allow as it has always been
 * for this API; the position has no meaning.
 */
export const createUnroutedFault = (
  app: Routes,
  { headAfter }: { readonly headAfter: 'get' | 'all' },
): ((context: Context) => Fault) => {
  let paths: TrieRouter<string> | undefined;
  return (context) => {
    paths ??= methodsByPath(app);
    const { path, method } = context.req;
    const known = new Set(paths.match('ALL', path)[0].map(([name]) => name));
    if (known.size === 0) return new Fault('API_NOT_FOUND', { path });
    const methods = [...known].flatMap((name) => (name === 'GET' && headAfter === 'get' ? ['GET', 'HEAD'] : [name]));
    if (known.has('GET') && headAfter === 'all') methods.push('HEAD');
    return new Fault('API_METHOD_NOT_ALLOWED', { method, allow: methods.join(', ') });
  };
};

const methodsByPath = ({ routes }: Routes): TrieRouter<string> => {
  const router = new TrieRouter<string>();
  // Middleware is registered under the method ALL.
  for (const { method, path } of routes) if (method !== 'ALL') router.add('ALL', path, method);
  return router;
};
