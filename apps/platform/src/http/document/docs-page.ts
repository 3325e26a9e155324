// The page of the API, written from its OpenAPI document. It holds everything it needs: no script, no font, no outside host.
import { createHash } from 'node:crypto';
import { operationAnchor, operationSection } from './docs-operation.ts';
import { schemaAnchor, schemaSection } from './docs-schema.ts';
import { DOCS_STYLE } from './docs-style.ts';
import { type ApiDocument, operationsOf, type PlacedOperation } from './document-types.ts';
import { anchor, escaped, paragraphs, prose } from './html.ts';

const STYLE_HASH = createHash('sha256').update(DOCS_STYLE).digest('base64');

/** Nothing may be loaded or run but the style that is in the page. */
export const DOCS_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${STYLE_HASH}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

interface Chapter {
  readonly name: string;
  readonly description: string;
  readonly operations: readonly PlacedOperation[];
}

export const docsPage = (document: ApiDocument, baseUrl: string): string => {
  const chapters = chaptersOf(document);
  const { title, version, description = '' } = document.info;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<style>${DOCS_STYLE}</style>
</head>
<body>
<nav aria-label="Contents">
<p><a href="#top"><strong>${escaped(title)}</strong></a> <small>${escaped(version)}</small></p>
${chapters.map(contentsOf).join('\n')}
<a href="#schemas">Schemas</a>
<ul>${Object.keys(document.components.schemas).map(schemaLink).join('')}</ul>
</nav>
<main id="top">
<h1>${escaped(title)}</h1>
<p><small>Version ${escaped(version)}, as <a href="/openapi.json">OpenAPI ${escaped(document.openapi)}</a></small></p>
${paragraphs(description)}
${chapters.map((chapter) => chapterOf(chapter, baseUrl)).join('\n')}
<h2 id="schemas">Schemas</h2>
${Object.entries(document.components.schemas)
  .map(([name, schema]) => schemaSection(name, schema))
  .join('\n')}
</main>
</body>
</html>
`;
};

/** An operation stands in the chapter of its first tag. */
const chaptersOf = (document: ApiDocument): Chapter[] => {
  const operations = operationsOf(document);
  return (document.tags ?? [])
    .map(({ name, description }) => ({
      name,
      description,
      operations: operations.filter(({ operation }) => operation.tags?.[0] === name),
    }))
    .filter((chapter) => chapter.operations.length > 0);
};

const contentsOf = ({ name, operations }: Chapter): string => {
  const links = operations.map(
    (placed) =>
      `<li><a href="#${operationAnchor(placed)}"><b class="${placed.method}">${placed.method.toUpperCase()}</b>${escaped(placed.path)}</a></li>`,
  );
  return `<a href="#${anchor('tag', name)}">${escaped(name)}</a><ul>${links.join('')}</ul>`;
};

const schemaLink = (name: string): string => `<li><a href="#${schemaAnchor(name)}">${escaped(name)}</a></li>`;

const chapterOf = ({ name, description, operations }: Chapter, baseUrl: string): string => `
<h2 id="${anchor('tag', name)}">${escaped(name)}</h2>
<p>${prose(description)}</p>
${operations.map((placed) => operationSection(placed, baseUrl)).join('\n')}`;
