// Renders a page of docs/ as HTML: headings with anchors, links into the guide, wide parts that scroll, no raw HTML.
import { posix } from 'node:path';
import { Marked } from 'marked';
import { headingSlugs } from './heading-slugs.mjs';
import { resolveLink } from './links.mjs';

const ESCAPED = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export const escapeHtml = (text) => text.replace(/[&<>"']/g, (character) => ESCAPED[character]);

/** Comments mark generated parts of a page. */
const COMMENTS = /^(?:\s*<!--[\s\S]*?-->)*\s*$/;

/** An error code, as in the first column of docs/errors.md. */
const ERROR_CODE = /^[A-Z][A-Z0-9_]+$/;

/** Addresses written in a text are examples. Only links in Markdown's own form become links. */
const tokenizer = { url: () => undefined };

/**
 * Renders a page.
 * @param {string} text
 * @param {object} where
 * @param {string} where.page path of the page below docs/
 * @param {ReadonlySet<string>} where.files paths of all files below docs/
 * @param {(path: string) => { width: number, height: number } | null} where.sizeOf size of a picture
 * @returns {{ title: Heading, headings: Heading[], html: string, ids: Set<string>, linked: Set<string> }} `html` has no title, `ids` are
 *   all anchors, `linked` are files of docs/ that the page shows or links to
 *
 * @typedef {{ depth: number, id: string, html: string, text: string }} Heading
 */
export function renderMarkdown(text, { page, files, sizeOf }) {
  const [headings, ids, linked] = [[], new Set(), new Set()];
  const slugOf = headingSlugs();
  const resolve = (href) => resolveLink(href, { page, files });
  const renderer = {
    html: ({ text: raw }) => (COMMENTS.test(raw) ? '' : escapeHtml(raw)),
    code: ({ text: code, lang = '' }) => codeBlock(code, lang.split(/\s/, 1)[0]),
    heading({ tokens, depth }) {
      const heading = { depth, html: this.parser.parseInline(tokens), text: plainText(tokens) };
      const id = slugOf(heading.text);
      ids.add(id);
      headings.push({ ...heading, id });
      // A link inside a link is not valid HTML.
      const inner = heading.html.includes('<a ') ? heading.html : `<a href="#${id}">${heading.html}</a>`;
      return `<h${depth} id="${id}">${inner}</h${depth}>\n`;
    },
    link({ href, tokens }) {
      const [label, target] = [this.parser.parseInline(tokens), resolve(href)];
      if (target.kind === 'source') return sourceText(label, plainText(tokens), target.path);
      if (target.kind === 'file') linked.add(target.path);
      return `<a href="${escapeHtml(target.url)}">${label}</a>`;
    },
    image({ href, text: description }) {
      const { kind, path, url } = resolve(href);
      if (kind !== 'file') throw new Error(`docs/${page}: the picture ${href} is not in docs/`);
      linked.add(path);
      const size = sizeOf(path);
      const area = size === null ? '' : ` width="${size.width}" height="${size.height}"`;
      return `<img src="${escapeHtml(url)}" alt="${escapeHtml(description)}"${area} loading="lazy">`;
    },
    table({ header, rows }) {
      const codes = header[0].text === 'Code' ? rows.map(([first]) => codeOf(first)) : [];
      for (const code of codes) if (code !== null) ids.add(code);
      return tableOf(header, rows, { codes, inline: (tokens) => this.parser.parseInline(tokens) });
    },
  };
  const marked = new Marked({ renderer, tokenizer });
  const tokens = marked.lexer(text).filter((token) => !isOwnContents(token));
  const [title, html] = splitTitle(marked.parser(tokens), headings, page);
  return { title, headings: headings.slice(1), html, ids, linked };
}

/** Whether a list only links to headings of its page. The guide has a table of contents, so the list is left out. */
const isOwnContents = ({ type, items }) =>
  type === 'list' &&
  items.every(
    (item) =>
      linksIn(item)
        .map(({ raw }) => raw)
        .join() === item.text && /\(#[^)]*\)$/.test(item.text),
  );

/** Separates the title, because the table of contents stands between the title and the text. */
function splitTitle(html, [title], page) {
  const end = html.indexOf('</h1>\n');
  if (title?.depth !== 1 || !html.startsWith('<h1 ')) throw new Error(`docs/${page}: a page begins with its title`);
  return [title, html.slice(end + '</h1>\n'.length)];
}

/** Returns the visible text of inline tokens, without formatting. */
const plainText = (tokens) => tokens.map((token) => (token.tokens ? plainText(token.tokens) : token.text)).join('');

/** A file of the repository has no address in the product, so its path replaces the link. */
const sourceText = (label, text, path) =>
  text === path || text === posix.basename(path)
    ? `<code>${escapeHtml(path)}</code>`
    : `${label} (<code>${escapeHtml(path)}</code> in the source code)`;

/**
 * Code scrolls in its own box. With a tab stop, the keyboard can scroll the box too. A diagram is shown as its text, because only a script
 * could draw the diagram.
 */
function codeBlock(code, language) {
  const block = `<pre tabindex="0"><code>${escapeHtml(code)}\n</code></pre>\n`;
  return language === 'mermaid'
    ? `<figure><figcaption>Diagram, in Mermaid's notation</figcaption>${block}</figure>\n`
    : block;
}

const codeOf = ({ tokens }) =>
  tokens.length === 1 && tokens[0].type === 'codespan' && ERROR_CODE.test(tokens[0].text) ? tokens[0].text : null;

/** Renders a table. A row with an error code can be linked: `errors#CODE`. */
function tableOf(header, rows, { codes, inline }) {
  const cell = (tag) => (one) => `<${tag}${one.align ? ` class="${one.align}"` : ''}>${inline(one.tokens)}</${tag}>`;
  const row = (cells, index) =>
    `<tr${codes[index] ? ` id="${codes[index]}"` : ''}>${cells.map(cell('td')).join('')}</tr>`;
  return `<div class="table" tabindex="0"><table>
<thead><tr>${header.map(cell('th')).join('')}</tr></thead>
<tbody>
${rows.map(row).join('\n')}
</tbody>
</table></div>
`;
}

/**
 * Returns the pages that the front page lists, by section, in their order.
 * @returns {{ title: string, pages: { path: string, text: string }[] }[]}
 */
export function listedPages(text, where) {
  const sections = [];
  for (const token of new Marked({ tokenizer }).lexer(text)) {
    if (token.type === 'heading' && token.depth === 2) sections.push({ title: plainText(token.tokens), pages: [] });
    else for (const link of linksIn(token)) addLink(sections.at(-1), link, where);
  }
  return sections.filter(({ pages }) => pages.length > 0);
}

function addLink(section, { href, tokens }, where) {
  const { kind, path } = resolveLink(href, where);
  if (section === undefined || kind !== 'page' || section.pages.some((one) => one.path === path)) return;
  section.pages.push({ path, text: plainText(tokens) });
}

/** Lists the link tokens in a token, in the order of the text. */
function linksIn(token) {
  if (token.type === 'link') return [token];
  const cells = token.type === 'table' ? [token.header, ...token.rows].flat() : [];
  return [...cells, ...(token.items ?? []), ...(token.tokens ?? [])].flatMap(linksIn);
}
