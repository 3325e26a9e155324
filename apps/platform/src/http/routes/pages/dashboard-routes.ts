// Routes for the dashboard: its files, and its single page for every other path below /app/.
import { Fault } from '@tunnel/errors';
import type { PlatformApp } from '../../shared/platform-env.ts';
import { wantsPage } from './pages.ts';
import { readStaticFiles, type StaticFiles, sendFile } from './static-files.ts';

const BASE = '/app/';
const INDEX = 'index.html';

/**
 * Content security policy of the dashboard. Forbids foreign and inline content, and allows only the platform's files and calls to the
 * platform.
 */
export const DASHBOARD_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': DASHBOARD_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const;

const NOT_BUILT = 'The dashboard is not built. Run `npm run build` in the checkout and restart the server.\n';

/** Reads the dashboard's files, by path below /app/. Returns null if the dashboard has not been built. */
export const readDashboard = (folder: string): StaticFiles | null => {
  const files = readStaticFiles(folder);
  return files.has(INDEX) ? files : null;
};

export const addDashboardRoutes = (app: PlatformApp, files: StaticFiles | null): void => {
  app.get('/', (context) => {
    if (!wantsPage(context)) throw new Fault('API_NOT_FOUND', { path: '/' });
    context.header('vary', 'accept');
    return context.redirect(BASE, 302);
  });
  app.get('/app', (context) => context.redirect(BASE + new URL(context.req.url).search, 308));
  app.get('/app/*', (context) => {
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
    if (files === null) return context.text(NOT_BUILT, 503, { 'retry-after': '10' });
    const path = context.req.path.slice(BASE.length);
    const file = files.get(path) ?? (isAsset(path) ? undefined : files.get(INDEX));
    if (file === undefined) throw new Fault('API_NOT_FOUND', { path: context.req.path });
    return sendFile(context, file);
  });
};

/** Returns true for the path of a file, as opposed to a page. A missing file must get a 404, not the page. */
const isAsset = (path: string): boolean => path.startsWith('assets/') || /\.\w+$/.test(path.split('/').at(-1) ?? '');

/** Returns true for the dashboard's paths, which are served even while the database is unavailable. */
export const isDashboardPath = (path: string): boolean => path === '/' || path === '/app' || path.startsWith(BASE);
