// The one place where an error becomes an HTTP answer.
import { type ApiError, apiErrorHeaders, apiErrorOf } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Logger } from '@tunnel/runtime';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
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
