// What every HTTP API of ours answers alike: the one shape of a refusal, and the small body of a health probe.
import type { Fault } from '@tunnel/errors';
import * as z from 'zod';

export const apiError = z
  .object({
    error: z.string().meta({ description: 'A readable error message.' }),
    // Not an enum: a client of today reads the codes of tomorrow's server too.
    code: z
      .string()
      .meta({ description: 'A stable error code. docs/errors.md lists every code.', examples: ['TUNNEL_UNKNOWN'] }),
    request_id: z
      .string()
      .meta({ description: 'The request id, as in the x-request-id header. Include it when you report a problem.' }),
  })
  .meta({ id: 'Error' });
export type ApiError = z.infer<typeof apiError>;

/** What the world is told of a fault: its public text and code, never its cause. */
export const apiErrorOf = (fault: Fault, requestId: string): ApiError => ({
  error: fault.message,
  code: fault.code,
  request_id: requestId,
});

/** The headers that a status asks for. */
export const apiErrorHeaders = ({ status, values }: Fault): Record<string, string> => {
  const headers: Record<string, string> = {};
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  // A refusal of another server that is passed on comes without its seconds.
  if (status === 429 || status === 503) headers['retry-after'] = String(values['seconds'] ?? 1);
  if (status === 409 && values['seconds'] !== undefined) headers['retry-after'] = String(values['seconds']);
  if (status === 405 && values['allow'] !== undefined) headers['allow'] = String(values['allow']);
  // The rest of a body that is too large is not read.
  if (status === 413) headers['connection'] = 'close';
  return headers;
};

/** A request id that a caller may choose: it goes into logs, so it stays short and plain. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;

export const okBody = z.object({ ok: z.boolean().meta({ examples: [true] }) }).meta({ id: 'Ok' });
