// The one place where an error becomes an HTTP answer; and what a request is told that no route is for.
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
  /** The line in the log for a fault of our own side. */
  readonly failed: string;
  /** Errors that only this app knows; null: not one of them. */
  readonly known?: (error: unknown) => Fault | null;
  /** Faults of our own side that somebody else tells the log of. */
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
  // hono and its adapter throw these for requests they cannot read.
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
 * 405 with the methods that the path has, as the routes themselves tell it, or 404. The table is built at the first such request: by
 * then all routes are there. Where HEAD stands in Allow means nothing; each API keeps to the place it has always had.
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
  // ALL is what middleware is registered under.
  for (const { method, path } of routes) if (method !== 'ALL') router.add('ALL', path, method);
  return router;
};
