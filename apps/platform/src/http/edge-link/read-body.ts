// The body of an edge's call, as its schema tells it.
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import type * as z from 'zod';
import type { PlatformEnv } from '../platform-env.ts';

export const readBody = async <T extends z.ZodType>(context: Context<PlatformEnv>, schema: T): Promise<z.output<T>> => {
  const result = schema.safeParse(await jsonOf(context));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Fault('API_BAD_REQUEST', { reason: `${issue?.path.join('.') || 'body'}: ${issue?.message ?? ''}` });
};

const jsonOf = async (context: Context<PlatformEnv>): Promise<unknown> => {
  try {
    return JSON.parse(await context.req.text()) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) throw new Fault('API_BAD_REQUEST', { reason: 'the body is not valid JSON' });
    throw error;
  }
};

/** Texts that go into a query as they are; PostgreSQL knows no NUL. */
export const refuseNul = (texts: Readonly<Record<string, unknown>>): void => {
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === 'string' && text.includes('\0')) {
      throw new Fault('API_BAD_REQUEST', { reason: `${name}: contains a character that no text has` });
    }
  }
};
