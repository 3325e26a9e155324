// The README and the pages inside an npm package. Links keep working there: a page that the README links to is in the package too, and
// any other link of the repository becomes plain text.
import { posix } from 'node:path';

const LINK = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\((?![a-z]+:)([^)\s]+)\)/g;
const CODE_BLOCK = /(^ *```[\s\S]*?^ *```$)/m;

/**
 * @param {{ path: string, text: string, read: (path: string) => string, rename: (text: string) => string }} readme
 * `path` is where the README is in the repository, `read` reads a page there, `rename` replaces names in the text.
 * @returns {Record<string, string>} the files of the package
 */
export function pagesOf({ path, text, read, rename }) {
  const linked = new Set(linksOf(path, text).filter((page) => /^docs\/[\w-]+\.md$/.test(page)));
  const pages = { 'README.md': withLinks(text, { from: path, to: 'README.md', linked }) };
  for (const page of linked) pages[page] = withLinks(read(page), { from: page, to: page, linked });
  return Object.fromEntries(Object.entries(pages).map(([name, page]) => [name, rename(page)]));
}

const resolvePath = (from, link) => posix.join(posix.dirname(from), link.split('#')[0]);

const linksOf = (from, text) =>
  text.split(CODE_BLOCK).flatMap((part, index) => {
    if (index % 2 === 1) return [];
    return [...part.matchAll(LINK)].map(([, , , link]) => resolvePath(from, link));
  });

const withLinks = (text, { from, to, linked }) =>
  text
    .split(CODE_BLOCK)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replace(LINK, (...match) => linkText(match, { from, to, linked })),
    )
    .join('');

function linkText([whole, picture, label, link], { from, to, linked }) {
  if (picture) return '';
  if (link.startsWith('#')) return whole;
  const page = resolvePath(from, link);
  if (!linked.has(page)) return label;
  const [, anchor] = link.split('#');
  return `[${label}](${posix.relative(posix.dirname(to), page)}${anchor === undefined ? '' : `#${anchor}`})`;
}

/** Leaves out a section of a page: its heading, and the text up to the next heading of the same level. */
export function withoutSection(text, heading) {
  const start = text.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`the page has no section "${heading}"`);
  const level = heading.split(' ')[0];
  const end = text.indexOf(`\n${level} `, start + heading.length);
  return end === -1 ? text.slice(0, start + 1) : text.slice(0, start) + text.slice(end);
}
