// The answer to a method that a path does not have.
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';

/** Registered after the methods of a path, so that only the others come here. */
export const refuseMethod =
  (allow: string) =>
  (context: Context): never => {
    throw new Fault('API_METHOD_NOT_ALLOWED', { method: context.req.method, allow });
  };
