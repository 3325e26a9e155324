// Pieces that the descriptions of routes share. What every operation may answer besides is added by openapi-document.ts.
import { z } from '@hono/zod-openapi';
import { apiError } from '@tunnel/contract';
import { type ErrorCode, Fault, type FaultValues } from '@tunnel/errors';

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

/** A refusal, with one of its codes as the example. */
export const refused = (description: string, code: ErrorCode, values: FaultValues = {}) => ({
  description,
  content: { 'application/json': { schema: apiError, example: errorExample(code, values) } },
});

export const errorExample = (code: ErrorCode, values: FaultValues = {}) => ({
  error: new Fault(code, values).message,
  code,
  request_id: 'req_4fK2mQ9xVbT7RsLpZ0aE',
});

export const jsonBody = <T extends z.ZodType>(schema: T) => ({
  required: true,
  content: { 'application/json': { schema } },
});

/** The name of the security scheme. */
export const BEARER = 'bearer';
export const withUser = [{ [BEARER]: [] }];

export const userRefusals = {
  401: refused('No access token, or one that is not accepted (any more).', 'ACCESS_TOKEN_MISSING'),
  403: refused('The account is suspended.', 'ACCOUNT_SUSPENDED'),
};

/** Of a route that asks for no credentials. */
export const noKey: never[] = [];

// Of the routes of accounts and sessions.
export const badBody = refused('A field is missing, of the wrong type, or breaks a rule.', 'API_BAD_REQUEST', {
  reason: 'email: must be an email address',
});
export const throttled = refused('Too many attempts; see Retry-After.', 'LOGIN_THROTTLED', { seconds: 42 });
export const writesPerDay = refused(
  'Too many calls while others wait, or too many keys, reservations, domains and apps made today; see Retry-After.',
  'API_WRITES_PER_DAY',
  { limit: 2000, seconds: 3600 },
);
export const busy = refused(
  'Too many passwords are being checked, or the database is away; see Retry-After.',
  'LOGIN_BUSY',
);

export const EXTENSIONS = 'extensions';

// Of the routes of a tunnel.
export const unknownTunnel = refused('No such tunnel, or not yours.', 'TUNNEL_UNKNOWN');
export const regionAway = refused('The region of the tunnel does not answer.', 'EDGE_AWAY', { region: 'local' });

export const tunnelIdParam = z.object({
  id: z
    .string()
    .meta({ description: 'The id of the log entry, or the tunnel_id.', examples: ['tun_4fK2mQ9xVbT7RsLpZ0aE'] }),
});
