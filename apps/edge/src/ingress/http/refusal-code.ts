// The code of the error page for a head or body that is refused.
import type { ErrorCode } from '@tunnel/errors';

export const refusalCodeOf = (status: number): ErrorCode => REFUSALS[status] ?? 'HTTP_BAD_REQUEST';

const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  400: 'HTTP_BAD_REQUEST',
  408: 'HTTP_HEAD_TIMEOUT',
  431: 'HTTP_HEAD_TOO_LARGE',
  501: 'HTTP_NOT_IMPLEMENTED',
  505: 'HTTP_VERSION_UNSUPPORTED',
};
