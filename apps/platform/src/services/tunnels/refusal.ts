// A refusal as an edge passes it on to its client.
import type { LinkRefusal } from '@tunnel/contract';
import { type ErrorCode, Fault, type FaultValues } from '@tunnel/errors';

export const refusal = (code: ErrorCode, values: FaultValues = {}): LinkRefusal => ({
  ok: false,
  code,
  message: new Fault(code, values).message,
});
