// The one place where a fault becomes an HTTP answer.
import { type ApiError, apiErrorHeaders, apiErrorOf } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Logger } from '@tunnel/runtime';
import { HTTPException } from 'hono/http-exception';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: ApiError;
}

export const errorAnswer = (error: unknown, requestId: string, logger: Logger): ErrorAnswer => {
  const fault = toFault(error);
  if (fault.status >= 500) {
    logger.error(
      { request_id: requestId, code: fault.code, err: fault.cause ?? fault.internal },
      'a REST request failed',
    );
  }
  return { status: fault.status, headers: apiErrorHeaders(fault), body: apiErrorOf(fault, requestId) };
};

const toFault = (error: unknown): Fault => {
  // hono and its adapter throw these for requests they cannot read.
  if (error instanceof HTTPException && error.status < 500) {
    return new Fault('API_BAD_REQUEST', { reason: 'the request cannot be read' }, { cause: error });
  }
  return Fault.from(error);
};
