// The one place where an error becomes an HTTP answer.
import { type ApiError, apiErrorHeaders, apiErrorOf } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Logger } from '@tunnel/runtime';
import { HTTPException } from 'hono/http-exception';
import { isDatabaseAway } from '../db/database-away.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: ApiError;
}

export const errorAnswer = (error: unknown, requestId: string, logger: Logger): ErrorAnswer => {
  const fault = faultOf(error);
  // A database that is away is told of once, by whoever watches it, not by every request that meets it.
  if (fault.status >= 500 && fault.code !== 'DATABASE_AWAY') {
    logger.error({ request_id: requestId, code: fault.code, err: fault.cause ?? fault.internal }, 'a request failed');
  }
  return { status: fault.status, headers: apiErrorHeaders(fault), body: apiErrorOf(fault, requestId) };
};

export const databaseAway = (cause?: unknown): Fault =>
  new Fault('DATABASE_AWAY', { seconds: PLATFORM_BOUNDS.DATABASE_RETRY_AFTER_SECS }, { cause });

const faultOf = (error: unknown): Fault => {
  if (error instanceof Fault) return error;
  if (isDatabaseAway(error)) return databaseAway(error);
  if (error instanceof HTTPException) return faultOfRefusal(error);
  return Fault.from(error);
};

/** hono and its adapter throw these for requests they cannot read. */
const faultOfRefusal = (error: HTTPException): Fault => {
  if (error.status === 415) return new Fault('API_MEDIA_TYPE', {}, { cause: error });
  if (error.status < 500) {
    return new Fault('API_BAD_REQUEST', { reason: 'the request cannot be read' }, { cause: error });
  }
  return Fault.from(error);
};
