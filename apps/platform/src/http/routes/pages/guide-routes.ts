// Routes for the guide: the pages of docs/, rendered by the build, with their pictures. Every response comes from memory.
import { Fault } from '@tunnel/errors';
import type { PlatformApp } from '../../shared/platform-env.ts';
import { makePage, wantsPage } from './pages.ts';
import { type StaticFiles, sendFile } from './static-files.ts';

const BASE = '/docs/guide/';

const policy = (...sources: readonly string[]): string =>
  ["default-src 'none'", ...sources, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].join('; ');

/** Content security policy of the guide: its own style and pictures, and nothing else. */
export const GUIDE_POLICY = policy("style-src 'self'", "img-src 'self'");

/** Policy of a picture that is opened by its own address. A picture in SVG contains its style. */
const PICTURE_POLICY = policy("style-src 'unsafe-inline'");

const NOT_BUILT = 'The guide is not built. Run `npm run build` in the checkout and restart the server.\n';

export const addGuideRoutes = (app: PlatformApp, files: StaticFiles): void => {
  const byAddress = new Map([...files].map(([path, file]) => [addressOf(path), file]));
  // Relative, because the platform may be served below a path.
  app.get('/docs/guide', (context) => context.redirect('guide/', 308));
  app.get('/docs/guide/*', (context) => {
    if (files.size === 0) return context.text(NOT_BUILT, 503, { 'retry-after': '10' });
    const address = context.req.path.slice(BASE.length);
    const file = byAddress.get(address);
    if (file !== undefined) {
      context.header('content-security-policy', address.endsWith('.svg') ? PICTURE_POLICY : GUIDE_POLICY);
      return sendFile(context, file);
    }
    if (!wantsPage(context)) throw new Fault('API_NOT_FOUND', { path: context.req.path });
    const page = notFoundPage(address);
    context.header('content-security-policy', page.policy);
    context.header('vary', 'accept');
    return context.html(page.html, 404);
  });
};

/** Returns the address of a file below the guide: pages have no extension, and the front page has the empty address. */
const addressOf = (path: string): string => (path === 'index.html' ? '' : path.replace(/\.html$/, ''));

const notFoundPage = (address: string): ReturnType<typeof makePage> => {
  const front = '../'.repeat(address.split('/').length - 1) || './';
  return makePage(
    'Page not found',
    `<p>The guide has no page at this address.</p>
<a class="go" href="${front}">Open the guide</a>`,
  );
};

/** Returns true for the guide's paths, which are served even while the database is unavailable. */
export const isGuidePath = (path: string): boolean => path === '/docs/guide' || path.startsWith(BASE);
