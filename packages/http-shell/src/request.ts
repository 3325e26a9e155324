// The socket, the headers and the id of a request, as node has them.
import type { HttpBindings } from '@hono/node-server';
import { REQUEST_ID_PATTERN } from '@tunnel/contract';
import type { Context } from 'hono';

/** Nothing for a call in the process. */
export const socketOf = (context: Context): Partial<HttpBindings> =>
  (context.env as Partial<HttpBindings> | undefined) ?? {};

/** As node has read it: hono would first make an object of all headers. `name` in lower case. */
export const headerOf = (context: Context, name: string): string | undefined => {
  const { incoming } = socketOf(context);
  const value = incoming?.headers === undefined ? context.req.header(name) : incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};

/** The caller's own where it is plain, or a new one. */
export const requestIdOf = (context: Context, newRequestId: () => string): string => {
  const given = headerOf(context, 'x-request-id') ?? '';
  return REQUEST_ID_PATTERN.test(given) ? given : newRequestId();
};
