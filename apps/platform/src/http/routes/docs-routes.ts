// The API about itself: its OpenAPI document, and a page made from it. Both are written once, at the first request.
import { createRoute, z } from '@hono/zod-openapi';
import { DOCS_POLICY, docsPage } from '../document/docs-page.ts';
import { openApiDocument } from '../document/openapi-document.ts';
import type { PlatformApp, RouteContext } from '../platform-env.ts';
import { json } from '../route-parts.ts';

const tags = ['documents'];

const documentRoute = createRoute({
  method: 'get',
  path: '/openapi.json',
  tags,
  summary: 'This API as an OpenAPI 3.1.0 document',
  security: [],
  responses: { 200: json(z.object({ openapi: z.literal('3.1.0') }).loose(), 'The document.') },
});

const pageRoute = createRoute({
  method: 'get',
  path: '/docs',
  tags,
  summary: 'This API as a page to read',
  security: [],
  responses: { 200: { description: 'The page.', content: { 'text/html': { schema: z.string() } } } },
});

export const addDocsRoutes = (app: PlatformApp, { settings }: Pick<RouteContext, 'settings'>): void => {
  const once = <T>(make: () => T): (() => T) => {
    let made: T | undefined;
    return () => (made ??= make());
  };
  const document = once(() => openApiDocument(app));
  const text = once(() => JSON.stringify(document()));
  const page = once(() => docsPage(document(), settings.public_url.replace(/\/$/, '')));
  app.openapi(documentRoute, (context) => context.body(text(), 200, { 'content-type': 'application/json' }) as never);
  app.openapi(pageRoute, (context) => {
    context.header('content-security-policy', DOCS_POLICY);
    return context.html(page(), 200);
  });
};
