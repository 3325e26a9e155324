// The frame of a page of the guide: header, table of contents, text, and the list of all pages. The page needs no script.
import { addressOf, FRONT, relativeUrl } from './links.mjs';
import { escapeHtml } from './markdown.mjs';

/** Headings of this depth and above are in the table of contents. */
const CONTENTS_DEPTH = 3;

/** Id of the list of pages. No heading of a page has an anchor that begins with an underscore. */
const PAGES_ID = '_pages';

const LOGO =
  '<svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"/><path d="M6 17v-4a6 6 0 0 1 12 0v4M10 17v-4a2 2 0 0 1 4 0v4"/></svg>';

/**
 * @param {{ path: string, rendered: ReturnType<typeof import('./markdown.mjs').renderMarkdown>, sections: Section[], style: string }} page
 *   `style` is the address of the style sheet
 * @typedef {{ title: string, pages: { path: string, text: string }[] }} Section
 */
export function pageHtml({ path, rendered: { title, headings, html }, sections, style }) {
  const to = (address) => escapeHtml(relativeUrl(path, address));
  const heading = path === FRONT ? title.text : `${title.text} · Hatchway documentation`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(heading)}</title>
<link rel="icon" href="${to('favicon.svg')}">
<link rel="stylesheet" href="${to(style)}">
</head>
<body>
<header>
<a class="brand" href="${to('')}">${LOGO}Hatchway</a>
<nav aria-label="Site"><a class="all" href="#${PAGES_ID}">All pages</a><a class="api" href="${to('../../docs')}">API reference</a><a href="${to('../../app/')}">Dashboard</a></nav>
</header>
<div class="columns">
<main>
<h1 id="${title.id}">${title.html}</h1>
${contents(headings)}<article>
${html}</article>
</main>
${pageList(path, sections, to)}</div>
</body>
</html>
`;
}

function contents(headings) {
  const items = headings
    .filter(({ depth }) => depth <= CONTENTS_DEPTH)
    // A link inside a link is not valid HTML.
    .map(
      ({ depth, id, html }) => `<li class="d${depth}"><a href="#${id}">${html.replace(/<\/?a\b[^>]*>/g, '')}</a></li>`,
    );
  if (items.length === 0) return '';
  return `<nav class="contents" aria-labelledby="_contents">
<p id="_contents">On this page</p>
<ul>
${items.join('\n')}
</ul>
</nav>
`;
}

function pageList(path, sections, to) {
  const link = (one) =>
    `<li><a href="${to(addressOf(one.path))}"${one.path === path ? ' aria-current="page"' : ''}>${escapeHtml(one.text)}</a></li>`;
  const section = ({ title, pages }) => `<p>${escapeHtml(title)}</p>\n<ul>\n${pages.map(link).join('\n')}\n</ul>\n`;
  const front = [{ path: FRONT, text: 'Overview' }];
  return `<nav class="pages" id="${PAGES_ID}" aria-label="All pages">
<ul>
${front.map(link).join('\n')}
<li><a href="${to('../../docs')}">API reference</a></li>
</ul>
${sections.map(section).join('')}</nav>
`;
}
