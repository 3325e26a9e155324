// Common parts of route descriptions. openapi-document.ts adds the responses common to all operations.
import { createRoute, type RouteConfig, type z } from '@hono/zod-openapi';
import { apiError } from '@tunnel/contract';
import { type ErrorCode, Fault, type FaultValues } from '@tunnel/errors';

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

/** Describes an error response, with an error code as the example. */
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

/** Name of the OpenAPI security scheme. */
export const BEARER = 'bearer';
const withUser = [{ [BEARER]: [] }];

const userRefusals = {
  401: refused('The access token is missing, expired or not valid.', 'ACCESS_TOKEN_MISSING'),
  403: refused('The account is suspended.', 'ACCOUNT_SUSPENDED'),
};

type Described = Omit<RouteConfig, 'method' | 'path' | 'tags' | 'security'>;

/**
 * Creates routes for signed-in callers, with the given tags. Adds the responses to calls without a valid token; a route can override the
 * responses.
 */
export const userRoutes =
  (...tags: string[]) =>
  <M extends RouteConfig['method'], P extends string, R extends Described>(method: M, path: P, route: R) =>
    createRoute({
      method,
      path,
      tags,
      ...route,
      security: withUser,
      responses: { ...userRefusals, ...route.responses },
    });

/** Security requirement of a route without credentials. */
export const noKey: never[] = [];

// Error responses of the routes for accounts and sessions.
export const badBody = refused('A field is missing or not valid.', 'API_BAD_REQUEST', {
  reason: 'email: must be an email address',
});
export const throttled = refused('Too many attempts; see Retry-After.', 'LOGIN_THROTTLED', { seconds: 42 });
export const writesPerDay = refused(
  'The rate limit, or the daily limit for new keys, reservations, domains and apps, is reached; see Retry-After.',
  'API_WRITES_PER_DAY',
  { limit: 2000, seconds: 3600 },
);
export const busy = refused(
  'Too many passwords are being checked, or the database is not available; see Retry-After.',
  'LOGIN_BUSY',
);

export const EXTENSIONS = 'extensions';
