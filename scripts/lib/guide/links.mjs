// Targets of links in the pages of docs/, and the addresses of pages in the guide. Paths are relative to docs/, with slashes.
import { posix } from 'node:path';

/** The front page, of docs/ and of the guide. */
export const FRONT = 'README.md';

const OUTSIDE = /^(?:https?:\/\/|mailto:)/i;
const SCHEME = /^(?:[a-z][a-z0-9+.-]*:|\/)/i;

/** Returns the address of a page or file below /docs/guide/. The front page has the empty address. */
export const addressOf = (path) => (path === FRONT ? '' : path.replace(/\.md$/, ''));

/** Returns the URL of an address, relative to a page, because the platform may be served below a path. */
export const relativeUrl = (page, address) =>
  `${'../'.repeat(addressOf(page).split('/').length - 1)}${address}` || './';

/**
 * Resolves a link of a page.
 * @param {string} href
 * @param {{ page: string, files: ReadonlySet<string> }} where `files` are the paths of all files in docs/
 * @returns {{ kind: 'page' | 'file' | 'outside' | 'source', url: string, path: string }} `source` is a file of the repository that
 *   is not in the guide; its path begins at the root of the repository
 */
export function resolveLink(href, { page, files }) {
  if (OUTSIDE.test(href)) return { kind: 'outside', url: href, path: '' };
  if (SCHEME.test(href)) throw new Error(`docs/${page}: the link ${href} must be relative or begin with https://`);
  const [target = '', anchor] = href.split('#');
  const fragment = anchor === undefined ? '' : `#${anchor}`;
  const path = target === '' ? page : posix.join(posix.dirname(page), target);
  if (!files.has(path)) return { kind: 'source', url: '', path: posix.join('docs', path) };
  const url = target === '' ? fragment : relativeUrl(page, addressOf(path)) + fragment;
  return { kind: path.endsWith('.md') ? 'page' : 'file', url, path };
}
