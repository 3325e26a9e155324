// Makes the files of the guide from docs/: a page for every Markdown file, the pictures and files that pages link to, and the style sheet.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { filesBelow } from '../paths.mjs';
import { addressOf, FRONT } from './links.mjs';
import { listedPages, renderMarkdown } from './markdown.mjs';
import { pageHtml } from './page.mjs';

const STYLE = readFileSync(new URL('guide.css', import.meta.url));

/** Types of files that the platform serves. A link to any other file is a mistake. */
const SERVED = new Set(['.svg', '.png', '.json', '.sh']);

/** Folders of docs/ with pages. */
const IS_PAGE = /^(?:recipes\/)?[^/]+\.md$/;

/**
 * Makes all files of the guide.
 * @param {string} docs the folder docs/
 * @param {string} icon path of the icon
 * @returns {{ files: Map<string, Buffer>, anchors: Map<string, ReadonlySet<string>> }} files by path, and the anchors of each page by address
 */
export function guideFiles(docs, icon) {
  const paths = filesBelow(docs).map((file) => relative(docs, file).split(sep).join('/'));
  const pages = paths.filter((path) => IS_PAGE.test(path));
  // A Markdown file elsewhere has no page, so links to that file become text.
  const known = new Set(paths.filter((path) => !path.endsWith('.md') || IS_PAGE.test(path)));
  const read = (path) => readFileSync(join(docs, path));
  const sizeOf = (path) => pictureSize(read(path));
  const sections = withUnlisted(listedPages(read(FRONT).toString(), { page: FRONT, files: known }), pages);
  // The name contains a hash, so browsers can keep the style sheet.
  const style = `assets/guide-${createHash('sha256').update(STYLE).digest('hex').slice(0, 8)}.css`;
  const files = new Map([
    [style, STYLE],
    ['favicon.svg', readFileSync(icon)],
  ]);
  const anchors = new Map();
  for (const path of pages) {
    const rendered = renderMarkdown(read(path).toString(), { page: path, files: known, sizeOf });
    anchors.set(addressOf(path), rendered.ids);
    files.set(`${addressOf(path) || 'index'}.html`, Buffer.from(pageHtml({ path, rendered, sections, style })));
    for (const file of rendered.linked) {
      if (!SERVED.has(extname(file))) throw new Error(`docs/${path}: the guide cannot serve ${file}`);
      files.set(file, read(file));
    }
  }
  return { files, anchors };
}

/** Adds the pages that the front page does not list. */
function withUnlisted(sections, pages) {
  const listed = new Set([FRONT, ...sections.flatMap((section) => section.pages.map(({ path }) => path))]);
  const more = pages.filter((path) => !listed.has(path)).map((path) => ({ path, text: addressOf(path) }));
  return more.length === 0 ? sections : [...sections, { title: 'More', pages: more }];
}

/** Size of a picture in CSS pixels, so that the text below does not move when the picture has loaded. Null if the size is unknown. */
export function pictureSize(bytes) {
  if (bytes.subarray(1, 4).toString('latin1') === 'PNG')
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  const [, width, height] =
    /^<svg[^>]* viewBox="0 0 (\d+) (\d+)"/.exec(bytes.subarray(0, 500).toString('latin1')) ?? [];
  return width === undefined ? null : { width: Number(width), height: Number(height) };
}
