// Which methods a path has, as the routes themselves tell it: for 405 and its Allow header, and for 404.
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import { TrieRouter } from 'hono/router/trie-router';

interface Routes {
  readonly routes: readonly { readonly method: string; readonly path: string }[];
}

/**
 * What a request is told that no route is for. Its table is built at the first one: by then all routes are there. Where HEAD
 * stands in Allow means nothing; each API keeps to the place it has always had.
 */
export const createUnroutedFault = (
  app: Routes,
  { headAfter }: { readonly headAfter: 'get' | 'all' },
): ((context: Context) => Fault) => {
  let paths: TrieRouter<string> | undefined;
  return (context) => {
    paths ??= methodsByPath(app);
    const { path, method } = context.req;
    const known = new Set(paths.match('ALL', path)[0].map(([name]) => name));
    if (known.size === 0) return new Fault('API_NOT_FOUND', { path });
    const methods = [...known].flatMap((name) => (name === 'GET' && headAfter === 'get' ? ['GET', 'HEAD'] : [name]));
    if (known.has('GET') && headAfter === 'all') methods.push('HEAD');
    return new Fault('API_METHOD_NOT_ALLOWED', { method, allow: methods.join(', ') });
  };
};

const methodsByPath = ({ routes }: Routes): TrieRouter<string> => {
  const router = new TrieRouter<string>();
  // ALL is what middleware is registered under.
  for (const { method, path } of routes) if (method !== 'ALL') router.add('ALL', path, method);
  return router;
};
