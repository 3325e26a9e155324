// Bodies are read to their end or to their bound: of a request that comes, and of an answer to our own.
import { Fault } from '@tunnel/errors';
import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { headerOf } from './request.ts';

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

/** The text of an answer. Rejects when it is longer than `maxBytes`. */
export const readBounded = async (response: Response, maxBytes: number): Promise<string> => {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the answer is over ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
};
