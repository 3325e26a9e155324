// Which methods a path has, as the routes themselves tell it: for 405 and its Allow header, and for 404.
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import { TrieRouter } from 'hono/router/trie-router';
import type { PlatformApp, PlatformEnv } from './platform-env.ts';

/** What a request is told that no route is for. Built at the first one: by then all routes are there. */
export const refusalOf = (app: PlatformApp): ((context: Context<PlatformEnv>) => Fault) => {
  let paths: TrieRouter<string> | undefined;
  return (context) => {
    paths ??= methodsByPath(app);
    const { path, method } = context.req;
    const known = new Set(paths.match('ALL', path)[0].map(([name]) => name));
    if (known.size === 0) return new Fault('API_NOT_FOUND', { path });
    if (known.has('GET')) known.add('HEAD');
    return new Fault('API_METHOD_NOT_ALLOWED', { method, allow: [...known].join(', ') });
  };
};

const methodsByPath = (app: PlatformApp): TrieRouter<string> => {
  const router = new TrieRouter<string>();
  // ALL is what middleware is registered under.
  for (const { method, path } of app.routes) if (method !== 'ALL') router.add('ALL', path, method);
  return router;
};
