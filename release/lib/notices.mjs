// Third-party notices: the packages whose code is in a bundle, the text of their licenses, and the licenses that we may ship.
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ROOT } from '../../scripts/lib/paths.mjs';

/** A package under any other license fails the release: a person has to read that license first. */
export const ALLOWED_LICENSES = [
  ...['MIT', 'MIT-0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'Unlicense'],
  ...['BlueOak-1.0.0', 'CC0-1.0', 'Python-2.0', 'PostgreSQL'],
];

const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

/** The folders of the packages with at least one byte in a bundle, from esbuild's metafile. */
export function packagesInside(metafile) {
  const folders = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      // A plugin's namespace stands in front of the path.
      .map(([path]) => PACKAGE_FOLDER.exec(path.replace(/^[\w-]+:/, ''))?.[0])
      .filter((folder) => folder !== undefined),
  );
  return [...new Set(folders)].sort(byText);
}

const byText = (a, b) => (a < b ? -1 : 1);

const LICENSE_FILE = /^(?:licen[cs]e|notice|copying)(?:[.-]|$)/i;

/** Name, version, license and texts of the package in a folder of the checkout or of the cache. `more` are further files with license texts. */
export function readNotice(folder, more = []) {
  const path = resolve(ROOT, folder);
  const { name, version, license, author } = JSON.parse(readFileSync(resolve(path, 'package.json'), 'utf8'));
  const files = [...readdirSync(path).filter((file) => LICENSE_FILE.test(file)), ...more];
  return {
    ...{ name, version, license },
    author: typeof author === 'object' ? author.name : author,
    texts: files.sort(byText).map((file) => readFileSync(resolve(path, file), 'utf8').trim()),
  };
}

/** Throws an error that lists every package with an unexpected license. */
export async function checkLicenses(notices) {
  const { default: satisfies } = await import('spdx-satisfies');
  const isAllowed = (license) => {
    try {
      return satisfies(license, ALLOWED_LICENSES);
    } catch {
      return false;
    }
  };
  const refused = notices.filter(({ license }) => !isAllowed(license));
  if (refused.length === 0) return;
  const list = refused.map(({ name, version, license }) => `${name}@${version}: ${JSON.stringify(license)}`);
  throw new Error(`licenses that are not on the list of release/lib/notices.mjs: ${list.join(', ')}`);
}

const RULE = '='.repeat(80);

/** The text of THIRD_PARTY_NOTICES.txt. */
export function noticesText(notices) {
  const sorted = [...new Map(notices.map((notice) => [`${notice.name}@${notice.version}`, notice]))]
    .sort(([a], [b]) => byText(a, b))
    .map(([, notice]) => notice);
  const parts = sorted.map(({ name, version, license, author, texts }) => {
    const missing = [`The package has no file with the license.${author === undefined ? '' : ` Author: ${author}`}`];
    const body = texts.length > 0 ? texts : missing;
    return [RULE, `${name} ${version}`, `License: ${license}`, '', ...body].join('\n');
  });
  const head = 'Hatchway contains code of the following packages. The licenses of these packages follow.';
  return `${[head, ...parts].join('\n\n')}\n`;
}
