// Checks request bodies and parameters before a handler runs: the types must match the schema, and texts must not contain invalid
// characters.
import { isUtf8 } from 'node:buffer';
import type { Hook } from '@hono/zod-openapi';
import { Fault } from '@tunnel/errors';
import { headerOf, unreadableFault } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { PlatformEnv } from '../shared/platform-env.ts';

/** Characters that no text contains: PostgreSQL cannot store NUL, and UTF-8 has no lone surrogates. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for
const NO_TEXT = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Maximum length of a field name quoted in a response, to keep the response a single line. */
const SHOWN_CHARACTERS = 200;

/**
 * Starts reading a JSON body as bytes. Later reads as text are derived from the bytes, which stay available: only the bytes can show that
 * the body was not valid UTF-8.
 */
export const keepBytes = (context: Context<PlatformEnv>): void => {
  if (!saysJson(context)) return;
  // If the body is cut off, the handler that reads the text gets the error.
  context.req.arrayBuffer().catch(() => {});
};

const saysJson = (context: Context<PlatformEnv>): boolean => /json/i.test(headerOf(context, 'content-type') ?? '');

/** Validation hook of all routes, called with the schema's result for a body, a query or path parameters. */
export const refuseUnreadable: Hook<unknown, PlatformEnv, string, unknown> = async (result, context) => {
  if (result.target === 'json' && saysJson(context) && !isUtf8(await context.req.arrayBuffer())) throw notUtf8();
  if (!result.success) throw unreadableFault(result.error.issues[0], result.target);
  // An invalid path parameter names a thing that does not exist, so its route responds with 404.
  if (result.target === 'param') return;
  const field = fieldWithoutText(result.data);
  if (field === null) return;
  throw new Fault('API_BAD_REQUEST', { reason: `${field}: contains an invalid character` });
};

const notUtf8 = (): Fault => new Fault('API_BAD_REQUEST', { reason: 'the body is not valid UTF-8' });

interface Spot {
  readonly value: unknown;
  readonly key: string;
  /** The object or array that contains the value. Null for the whole body. */
  readonly within: Spot | null;
}

/**
 * Returns the path of the first string with an invalid character, or null. Works without recursion, because the caller controls the
 * depth.
 */
const fieldWithoutText = (data: unknown): string | null => {
  const waiting: Spot[] = [{ value: data, key: '', within: null }];
  for (let spot = waiting.pop(); spot !== undefined; spot = waiting.pop()) {
    const { value } = spot;
    if (typeof value === 'string' && NO_TEXT.test(value)) return nameOf(spot);
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, inner] of Object.entries(value)) waiting.push({ value: inner, key, within: spot });
  }
  return null;
};

const nameOf = (found: Spot): string => {
  const keys: string[] = [];
  for (let spot: Spot | null = found; spot?.within; spot = spot.within) keys.unshift(spot.key);
  return keys.join('.').slice(0, SHOWN_CHARACTERS) || 'body';
};

/** Describes where broken JSON is broken. Returns null if the body is not the problem. */
export const problemOfJson = async (context: Context<PlatformEnv>): Promise<string | null> => {
  if (!saysJson(context)) return null;
  try {
    JSON.parse(await context.req.text());
    return null;
  } catch (error) {
    const at = /position \d+/.exec(error instanceof Error ? error.message : '')?.[0];
    return `the body is not valid JSON${at === undefined ? '' : ` (${at})`}`;
  }
};
