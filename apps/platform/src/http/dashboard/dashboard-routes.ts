// The dashboard over HTTP: its files, and its one page for every address below /app/ that is no file.
import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import type { Context } from 'hono';
import { wantsPage } from '../pages.ts';
import type { PlatformApp, PlatformEnv } from '../platform-env.ts';
import { choosePacking, type DashboardFile, type DashboardFiles, INDEX } from './dashboard-files.ts';

const BASE = '/app/';

/** Nothing from elsewhere, nothing inside the page itself: only files of ours, and calls to ourselves. */
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

const KEEP_FOR_EVER = 'public, max-age=31536000, immutable';
const NOT_BUILT = 'The dashboard is not built here. Run `npm run build` in the checkout, and start again.\n';

export const addDashboardRoutes = (app: PlatformApp, files: DashboardFiles): void => {
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

/** Pages have no ending; a file that is gone must not be answered with a page. */
const isAsset = (path: string): boolean => path.startsWith('assets/') || /\.\w+$/.test(path.split('/').at(-1) ?? '');

const sendFile = (context: Context<PlatformEnv>, file: DashboardFile): Response => {
  const packing = choosePacking(headerOf(context, 'accept-encoding'), file);
  const etag = `"${file.etag}${packing === null ? '' : `-${packing}`}"`;
  context.header('cache-control', file.hashed ? KEEP_FOR_EVER : 'no-cache');
  context.header('vary', 'accept-encoding');
  context.header('etag', etag);
  if (isKnown(headerOf(context, 'if-none-match'), etag)) return context.body(null, 304);
  const bytes = (packing === null ? undefined : file.packed.get(packing)) ?? file.plain;
  if (packing !== null) context.header('content-encoding', packing);
  context.header('content-type', file.type);
  context.header('content-length', String(bytes.length));
  return context.body(bytes, 200);
};

const isKnown = (header: string | undefined, etag: string): boolean =>
  header !== undefined && header.split(',').some((part) => [etag, '*'].includes(part.trim().replace(/^W\//, '')));

/** What is served whatever the database does. */
export const isDashboardPath = (path: string): boolean => path === '/' || path === '/app' || path.startsWith(BASE);
