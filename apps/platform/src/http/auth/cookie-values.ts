// Reads the Cookie header without losing cookies of the same name.
import type { Context } from 'hono';
import type { PlatformEnv } from '../shared/platform-env.ts';

/**
 * Every value of that name: who reads cookies into a map sees one of two, and does not know whose. Only the blanks of HTTP are cut off:
 * a browser lets any page set a name that begins with another kind of blank, as if it were another name.
 */
export const cookieValues = (context: Context<PlatformEnv>, name: string): string[] =>
  (context.req.header('cookie') ?? '')
    .split(';')
    .map((pair) => pair.replaceAll(/^[ \t]+|[ \t]+$/g, ''))
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
