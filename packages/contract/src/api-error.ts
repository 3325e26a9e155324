// Responses shared by all of Hatchway's HTTP APIs: the error body, and the small body of a health probe.
import type { Fault } from '@tunnel/errors';
import * as z from 'zod';

export const apiError = z
  .object({
    error: z.string().meta({ description: 'A readable error message.' }),
    // A string instead of an enum, so that today's clients accept error codes of future servers.
    code: z
      .string()
      .meta({ description: 'A stable error code. docs/errors.md lists every code.', examples: ['TUNNEL_UNKNOWN'] }),
    request_id: z
      .string()
      .meta({ description: 'The request id, as in the x-request-id header. Include it when you report a problem.' }),
  })
  .meta({ id: 'Error' });
export type ApiError = z.infer<typeof apiError>;

/** Makes the error body from a fault, with its public text and code. The cause is never included. */
export const apiErrorOf = (fault: Fault, requestId: string): ApiError => ({
  error: fault.message,
  code: fault.code,
  request_id: requestId,
});

/** Returns the response headers required by the status of a fault. */
export const apiErrorHeaders = ({ status, values }: Fault): Record<string, string> => {
  const headers: Record<string, string> = {};
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  // An error forwarded from another server has no `seconds`, so Retry-After is 1.
  if (status === 429 || status === 503) headers['retry-after'] = String(values['seconds'] ?? 1);
  if (status === 409 && values['seconds'] !== undefined) headers['retry-after'] = String(values['seconds']);
  if (status === 405 && values['allow'] !== undefined) headers['allow'] = String(values['allow']);
  // The rest of an oversized request body is not read, so the connection cannot be reused.
  if (status === 413) headers['connection'] = 'close';
  return headers;
};

/** Valid request ids of callers. Request ids appear in logs, so they must be short and plain. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;

export const okBody = z.object({ ok: z.boolean().meta({ examples: [true] }) }).meta({ id: 'Ok' });
