// Helpers for requests before they reach a handler: socket, headers, request id, and reading a body up to a limit.
import type { HttpBindings } from '@hono/node-server';
import { REQUEST_ID_PATTERN } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';

/** Returns the Node.js request and response of a call. Empty for a call within the process. */
export const socketOf = (context: Context): Partial<HttpBindings> =>
  (context.env as Partial<HttpBindings> | undefined) ?? {};

/** Returns a header as parsed by Node.js, which is faster than Hono's copy of all headers. `name` must be in lower case. */
export const headerOf = (context: Context, name: string): string | undefined => {
  const { incoming } = socketOf(context);
  const value = incoming?.headers === undefined ? context.req.header(name) : incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};

/**
 * Returns API_CALLER_GONE if the caller disconnected before the end of its request, otherwise null. The error from reading the body,
 * whatever its code, is then the caller's. Detected by the state of the connection, because the error arises inside Node.js, where it
 * cannot be wrapped.
 */
export const callerGone = (context: Context, error: unknown): Fault | null => {
  const { incoming } = socketOf(context);
  if (error instanceof Fault || incoming === undefined || !incoming.destroyed || incoming.complete) return null;
  return new Fault('API_CALLER_GONE', {}, { cause: error });
};

/** Returns the caller's request id if it is well formed, otherwise a new id. */
export const requestIdOf = (context: Context, newRequestId: () => string): string => {
  const given = headerOf(context, 'x-request-id') ?? '';
  return REQUEST_ID_PATTERN.test(given) ? given : newRequestId();
};

/**
 * Middleware that limits the size of a body: by its Content-Length, even for a GET, or without Content-Length by reading up to the limit.
 */
export const boundBody = (limit: number): MiddlewareHandler => {
  const refuse = (): never => {
    throw new Fault('API_BODY_TOO_LARGE', { limit });
  };
  const read = bodyLimit({ maxSize: limit, onError: refuse });
  return (context, next) => {
    const { method } = context.req;
    const length = headerOf(context, 'content-length');
    if (length !== undefined && Number(length) > limit) refuse();
    if (length !== undefined || method === 'GET' || method === 'HEAD') return next();
    return read(context, next);
  };
};

/**
 * Middleware for routes with an optional body. Removes the content type of an empty body, because many callers declare JSON for every
 * POST, even without a body.
 */
export const emptyBodyIsNone: MiddlewareHandler = async (context, next) => {
  if ((await context.req.text()) === '') context.req.raw.headers.delete('content-type');
  await next();
};

/** Reads the text of a response. Rejects if the text is longer than `maxBytes`. */
export const readBounded = async (response: Response, maxBytes: number): Promise<string> => {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the response is larger than ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
};
