// What the stand-in refuses, in the processor's own shape.

export interface SimErrorBody {
  readonly type: 'invalid_request_error' | 'card_error' | 'idempotency_error' | 'api_error';
  readonly message: string;
  readonly code?: string;
  readonly decline_code?: string;
  readonly param?: string;
}

export class SimError extends Error {
  readonly status: number;
  readonly body: SimErrorBody;

  constructor(status: number, body: SimErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }
}

export const badRequest = (message: string, more: { code?: string; param?: string } = {}): SimError =>
  new SimError(400, { type: 'invalid_request_error', message, ...more });

export const noSuch = (kind: string, id: string, param = 'id'): SimError =>
  new SimError(404, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    message: `No such ${kind}: '${id}'`,
    param,
  });

export const cardDeclined = (): SimError =>
  new SimError(402, {
    type: 'card_error',
    code: 'card_declined',
    decline_code: 'generic_decline',
    message: 'Your card was declined.',
  });
