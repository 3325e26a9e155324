// The one place where a fault becomes an HTTP answer.
import { type ApiError, apiErrorOf } from '@tunnel/contract';
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
  return { status: fault.status, headers: headersOf(fault), body: apiErrorOf(fault, requestId) };
};

const toFault = (error: unknown): Fault => {
  // hono and its adapter throw these for requests they cannot read.
  if (error instanceof HTTPException && error.status < 500) {
    return new Fault('API_BAD_REQUEST', { reason: 'the request cannot be read' }, { cause: error });
  }
  return Fault.from(error);
};

const headersOf = (fault: Fault): Record<string, string> => {
  const { seconds, allow } = fault.values;
  const headers: Record<string, string> = {};
  if (fault.status === 401) headers['www-authenticate'] = 'Bearer';
  if (fault.status === 429 && seconds !== undefined) headers['retry-after'] = String(seconds);
  if (fault.status === 405 && allow !== undefined) headers['allow'] = String(allow);
  // The rest of a body that is too large is not read.
  if (fault.status === 413) headers['connection'] = 'close';
  return headers;
};
