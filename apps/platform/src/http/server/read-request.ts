// What every request has to be before a handler sees it: of the described types, without characters that no text has.
import { isUtf8 } from 'node:buffer';
import type { Hook } from '@hono/zod-openapi';
import { Fault } from '@tunnel/errors';
import { headerOf, unreadableFault } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { PlatformEnv } from '../shared/platform-env.ts';

/** PostgreSQL stores no NUL, and UTF-8 has no lone surrogate: neither is part of any text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for
const NO_TEXT = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Quoted in an answer: a line, not a page. */
const SHOWN_CHARACTERS = 200;

/**
 * Reads a JSON body as bytes. Whoever asks for its text later is given what is made of them, and the bytes are still there: a
 * text does not tell that what it was made of was none.
 */
export const keepBytes = (context: Context<PlatformEnv>): void => {
  if (!saysJson(context)) return;
  // Whoever reads the text hears of a body that breaks off.
  context.req.arrayBuffer().catch(() => {});
};

const saysJson = (context: Context<PlatformEnv>): boolean => /json/i.test(headerOf(context, 'content-type') ?? '');

/** The hook of all routes, called with what the schema made of a body, a query or the parameters of a path. */
export const refuseUnreadable: Hook<unknown, PlatformEnv, string, unknown> = async (result, context) => {
  if (result.target === 'json' && saysJson(context) && !isUtf8(await context.req.arrayBuffer())) throw notUtf8();
  if (!result.success) throw unreadableFault(result.error.issues[0], result.target);
  // An odd parameter of a path is a thing that does not exist: its route answers 404.
  if (result.target === 'param') return;
  const field = fieldWithoutText(result.data);
  if (field === null) return;
  throw new Fault('API_BAD_REQUEST', { reason: `${field}: contains an invalid character` });
};

const notUtf8 = (): Fault => new Fault('API_BAD_REQUEST', { reason: 'the body is not valid UTF-8' });

interface Spot {
  readonly value: unknown;
  readonly key: string;
  /** null: the whole. */
  readonly within: Spot | null;
}

/** Where the first such string is; null: nowhere. Without recursion, as the depth is the caller's choice. */
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

/** Says where broken JSON breaks; null: the body is not the trouble. */
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
