// The socket and the headers of a request, as node has them.
import type { Context } from 'hono';
import type { PlatformEnv } from './platform-env.ts';

/** Nothing for a call in the process. */
export const socketOf = (context: Context<PlatformEnv>): Partial<PlatformEnv['Bindings']> => context.env ?? {};

/** As node has read it: hono would first make an object of all headers. `name` in lower case. */
export const headerOf = (context: Context<PlatformEnv>, name: string): string | undefined => {
  const { incoming } = socketOf(context);
  const value = incoming?.headers === undefined ? context.req.header(name) : incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};
