// Whether a request comes from the address line of a browser. Programs ask for JSON, or for anything.
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { PlatformEnv } from './platform-env.ts';

export const wantsPage = (context: Context<PlatformEnv>): boolean =>
  accepts(context, {
    header: 'Accept',
    supports: ['application/json', 'text/html'],
    default: 'application/json',
  }) === 'text/html';
