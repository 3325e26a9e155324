// What is known of a request before a handler sees it: its socket, its headers, its id; and bodies, read to their end or their bound.
import type { HttpBindings } from '@hono/node-server';
import { REQUEST_ID_PATTERN } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';

/** Nothing for a call in the process. */
export const socketOf = (context: Context): Partial<HttpBindings> =>
  (context.env as Partial<HttpBindings> | undefined) ?? {};

/** As node has read it: hono would first make an object of all headers. `name` in lower case. */
export const headerOf = (context: Context, name: string): string | undefined => {
  const { incoming } = socketOf(context);
  const value = incoming?.headers === undefined ? context.req.header(name) : incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};

/**
 * null: not that. The caller hung up before the end of its request: what reading the rest of it said then is about the caller, whatever
 * its code. Where it arises nothing can be wrapped, because it is node that reads; so it is told by the connection.
 */
export const callerGone = (context: Context, error: unknown): Fault | null => {
  const { incoming } = socketOf(context);
  if (error instanceof Fault || incoming === undefined || !incoming.destroyed || incoming.complete) return null;
  return new Fault('API_CALLER_GONE', {}, { cause: error });
};

/** The caller's own where it is plain, or a new one. */
export const requestIdOf = (context: Context, newRequestId: () => string): string => {
  const given = headerOf(context, 'x-request-id') ?? '';
  return REQUEST_ID_PATTERN.test(given) ? given : newRequestId();
};

/** A body is judged by its announced length; one without is read up to the limit. A GET that announces one too. */
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

/** For a route whose body may be left out: many callers name JSON on every POST, also on one that has none. */
export const emptyBodyIsNone: MiddlewareHandler = async (context, next) => {
  if ((await context.req.text()) === '') context.req.raw.headers.delete('content-type');
  await next();
};

/** The text of an answer. Rejects when it is longer than `maxBytes`. */
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
