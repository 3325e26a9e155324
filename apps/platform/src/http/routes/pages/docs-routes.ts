// Routes for the API documentation: the OpenAPI document, and a page that renders the document with the bundled Swagger UI.
import { createRoute, z } from '@hono/zod-openapi';
import { Fault } from '@tunnel/errors';
import type { PlatformApp } from '../../shared/platform-env.ts';
import { json } from '../../shared/route-parts.ts';
import { openApiDocument } from './openapi-document.ts';
import { type StaticFiles, sendFile } from './static-files.ts';

const tags = ['documents'];

const documentRoute = createRoute({
  method: 'get',
  path: '/openapi.json',
  tags,
  summary: 'Get the OpenAPI 3.1.0 document',
  security: [],
  responses: { 200: json(z.object({ openapi: z.literal('3.1.0') }).loose(), 'The document.') },
});

const pageRoute = createRoute({
  method: 'get',
  path: '/docs',
  tags,
  summary: 'Show the API reference',
  security: [],
  responses: { 200: { description: 'The page.', content: { 'text/html': { schema: z.string() } } } },
});

/**
 * Content security policy of the documentation page. Forbids foreign and inline content, and allows only the platform's files and calls
 * to the platform.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * The documentation page. Links are relative, because the platform may be served below a path. Without the viewer's files, the page still
 * links to the document. Swagger UI replaces the <main> element with its own.
 */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hatchway platform API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<header><a href="app/">&larr; Back to the dashboard</a></header>
<div id="api"><main><a href="openapi.json">The API as an OpenAPI document</a></main></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** Script that starts Swagger UI. A separate file, because the content security policy forbids inline scripts. */
const START = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#api', deepLinking: true, validatorUrl: null });\n`;

/**
 * Styles of the documentation page: the link back in the style of the dashboard, and line breaks in long paths only at slashes, never
 * inside a word.
 */
const STYLE = `header{padding:.75rem 1.25rem;border-bottom:1px solid #e3e5ea;font:500 .875rem/1.375rem system-ui,sans-serif}
header a{color:#3552cf;text-decoration:none}
header a:hover{text-decoration:underline}
.swagger-ui .opblock .opblock-summary-path{word-break:normal;overflow-wrap:break-word}
`;

export const addDocsRoutes = (app: PlatformApp, { viewer }: { readonly viewer: StaticFiles }): void => {
  let text: string | undefined;
  app.openapi(documentRoute, (context) => {
    // Built at the first request, after all routes have been added.
    text ??= JSON.stringify(openApiDocument(app));
    return context.body(text, 200, { 'content-type': 'application/json' }) as never;
  });
  app.openapi(pageRoute, (context) => {
    context.header('content-security-policy', POLICY);
    return context.html(PAGE, 200);
  });
  app.get('/docs/start.js', (context) =>
    context.body(START, 200, { 'content-type': 'text/javascript; charset=utf-8' }),
  );
  app.get('/docs/page.css', (context) => context.body(STYLE, 200, { 'content-type': 'text/css; charset=utf-8' }));
  app.get('/docs/:file', (context) => {
    const file = viewer.get(context.req.param('file'));
    if (file === undefined) throw new Fault('API_NOT_FOUND', { path: context.req.path });
    return sendFile(context, file);
  });
};
