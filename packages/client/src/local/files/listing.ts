// Folder listings: the entries of a folder and the page that shows them, without scripts and with all names escaped.
import { lstat, opendir } from 'node:fs/promises';
import { sep } from 'node:path';
import { isServedName } from './request-path.ts';
import { type OpenedFolder, openBelow } from './safe-open.ts';

/**
 * Maximum number of entries on a folder's page. Every entry costs a file system call.
 * @limit tunnels: `tunnel files`, entries shown per folder | further entries are not shown
 */
export const FILES_LISTED_MAX = 1000;

export interface ListedEntry {
  readonly name: string;
  readonly isFolder: boolean;
  readonly bytes: number;
  readonly modifiedMs: number;
}

export interface Listing {
  /** Names of the folders from the published root down to the listed folder. */
  readonly names: readonly string[];
  /** Entries of the listed folder: folders first, then by name. */
  readonly entries: readonly ListedEntry[];
  /** True if the listed folder has more entries than shown. */
  readonly isCut: boolean;
}

/** Lists a folder without hidden entries, links out of the root, pipes and devices. Every listed entry can be requested. */
export const listFolder = async (root: string, names: readonly string[], folder: OpenedFolder): Promise<Listing> => {
  const { found, isCut } = await readNames(folder.path);
  const entries = await Promise.all(found.map((name) => entryOf(root, names, name, folder.path)));
  const shown = entries.filter((entry) => entry !== null);
  return { names, entries: shown.sort(byKindAndName), isCut };
};

/** Reads at most as many names as are shown, because a folder can hold millions of entries. */
const readNames = async (path: string): Promise<{ found: string[]; isCut: boolean }> => {
  const found: string[] = [];
  const folder = await opendir(path);
  // The loop closes the opened folder in all cases.
  for await (const { name } of folder) {
    if (!isServedName(name, sep)) continue;
    if (found.length === FILES_LISTED_MAX) return { found, isCut: true };
    found.push(name);
  }
  return { found, isCut: false };
};

/** Returns a folder's entry for the listing, or null if visitors could not get the file. */
const entryOf = async (
  root: string,
  names: readonly string[],
  name: string,
  path: string,
): Promise<ListedEntry | null> => {
  const own = await lstat(`${path}${sep}${name}`).catch(() => null);
  const stat = own?.isSymbolicLink() === true ? await linkedStat(root, [...names, name]) : own;
  if (stat === null || !(stat.isFile() || stat.isDirectory())) return null;
  return { name, isFolder: stat.isDirectory(), bytes: stat.size, modifiedMs: stat.mtimeMs };
};

const linkedStat = async (root: string, names: readonly string[]) => {
  const opened = await openBelow(root, names).catch(() => null);
  if (opened === null || !('handle' in opened)) return null;
  try {
    return await opened.handle.stat();
  } finally {
    await opened.handle.close();
  }
};

const collator = new Intl.Collator('en', { numeric: true });

const byKindAndName = (a: ListedEntry, b: ListedEntry): number =>
  Number(b.isFolder) - Number(a.isFolder) || collator.compare(a.name, b.name) || (a.name < b.name ? -1 : 1);

const STYLE = `
:root { color-scheme: light dark; --line: #d9dee6; --text: #17202c; --soft: #52607a; --back: #fff; --link: #1d4ed8 }
@media (prefers-color-scheme: dark) { :root { --line: #2c3543; --text: #e7ebf2; --soft: #a0adc0; --back: #0f131a; --link: #8ab4ff } }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.15rem; overflow-wrap: anywhere }
table { width: 100%; border-collapse: collapse }
th { text-align: left; font-weight: 600; color: var(--soft) }
th, td { padding: .45rem .25rem; border-bottom: 1px solid var(--line); vertical-align: top }
td:first-child { overflow-wrap: anywhere }
th + th, td + td { text-align: right; white-space: nowrap; padding-left: 1rem; color: var(--soft); font-variant-numeric: tabular-nums }
a { color: var(--link); text-decoration: none }
a:hover, a:focus { text-decoration: underline }
@media (max-width: 30rem) { th:last-child, td:last-child { display: none } }`;

/** Content security policy of the listing: only inline styles are allowed, whatever a file name contains. */
export const LISTING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

export const listingPage = ({ names, entries, isCut }: Listing): string => {
  const title = `Files in /${names.map((name) => `${name}/`).join('')}`;
  const up = names.length === 0 ? '' : '<tr><td><a href="../">../</a></td><td></td><td></td></tr>\n';
  const empty = entries.length === 0 ? '<p>This folder is empty.</p>\n' : '';
  const more = isCut ? `<p>Only ${FILES_LISTED_MAX} entries are listed.</p>\n` : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${shown(title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}
</style>
</head>
<body>
<h1>${shown(title)}</h1>
<table>
<thead><tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Changed (UTC)</th></tr></thead>
<tbody>
${up}${entries.map(rowOf).join('')}</tbody>
</table>
${empty}${more}</body>
</html>
`;
};

const rowOf = ({ name, isFolder, bytes, modifiedMs }: ListedEntry): string => {
  const slash = isFolder ? '/' : '';
  const time = new Date(modifiedMs).toISOString();
  return `<tr><td><a href="./${encodeURIComponent(name)}${slash}"><bdi>${shown(name)}</bdi>${slash}</a></td><td>${
    isFolder ? '' : sizeText(bytes)
  }</td><td><time datetime="${time}">${time.slice(0, 16).replace('T', ' ')}</time></td></tr>\n`;
};

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

const sizeText = (bytes: number): string => {
  const step = Math.min(UNITS.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[step]}`;
};

/** Escapes text for HTML content and attributes. Control characters are shown as Unicode symbols. */
const shown = (text: string): string =>
  text
    .replace(/[\0-\x1f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)))
    .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
