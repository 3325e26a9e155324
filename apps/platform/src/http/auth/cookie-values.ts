// Reads the Cookie header without dropping cookies of the same name.
import type { Context } from 'hono';
import type { PlatformEnv } from '../shared/platform-env.ts';

/**
 * Returns every value of the cookie name. A parser that builds a map would keep an arbitrary value of several. Only spaces and tabs, the
 * whitespace of HTTP, are trimmed: browsers let any page set a cookie name starting with other whitespace, which would then look like the
 * real name.
 */
export const cookieValues = (context: Context<PlatformEnv>, name: string): string[] =>
  (context.req.header('cookie') ?? '')
    .split(';')
    .map((pair) => pair.replaceAll(/^[ \t]+|[ \t]+$/g, ''))
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
