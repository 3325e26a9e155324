// Writes the guide beside the server: the pages of docs/ with their pictures, with compressed copies of all texts.
import { rmSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip, constants as zlib } from 'node:zlib';
import { GUIDE_DIST, writeAtomically } from './build-state.mjs';
import { guideFiles } from './guide/guide-files.mjs';
import { filesBelow, ROOT } from './paths.mjs';

/** Quality of brotli. The highest quality makes the files 4 % smaller, and takes 15 times as long. */
const BROTLI_QUALITY = 9;

/** Builds the guide, and removes files of earlier builds. Resolves with a line about its size. */
export async function buildGuide() {
  const { files, anchors } = guideFiles(join(ROOT, 'docs'), join(ROOT, 'apps/dashboard/public/favicon.svg'));
  const packed = await Promise.all(
    [...files].map(async ([path, bytes]) => [[path, bytes], ...(await copiesOf(path, bytes))]),
  );
  const wanted = new Map(packed.flat());
  for (const [path, bytes] of wanted) writeAtomically(join(GUIDE_DIST, path), bytes);
  for (const file of filesBelow(GUIDE_DIST)) {
    if (!wanted.has(relative(GUIDE_DIST, file).split(sep).join('/'))) rmSync(file);
  }
  const kib = Math.round([...files.values()].reduce((sum, { length }) => sum + length, 0) / 1024);
  return `guide      ${anchors.size} pages, ${kib} KiB`;
}

/** Compresses a file in advance. Pictures in PNG are compressed already. */
async function copiesOf(path, bytes) {
  if (extname(path) === '.png') return [];
  const params = { [zlib.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [gz, br] = await Promise.all([
    promisify(gzip)(bytes, { level: 9 }),
    promisify(brotliCompress)(bytes, { params }),
  ]);
  return [
    [`${path}.gz`, gz],
    [`${path}.br`, br],
  ];
}
