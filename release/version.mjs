// Sets the version of all parts: `npm run release:version -- V`. Writes nothing with local changes or without entries in CHANGELOG.md.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../scripts/lib/paths.mjs';
import { UsageError } from './lib/options.mjs';
import { run } from './lib/programs.mjs';
import { changedFiles, checkVersion } from './lib/version-changes.mjs';

const git = async (...args) => (await run('git', args)).trim();

/** The commit of a version: the tag, or the commit that closed the section in CHANGELOG.md. A version with neither ends at HEAD. */
async function commitOf(version) {
  const tag = await git('tag', '--list', `v${version}`);
  if (tag !== '') return git('rev-list', '-1', tag);
  const released = await git('log', '-1', '--format=%H', `-S## [${version}]`, '--', 'CHANGELOG.md');
  return released === '' ? git('rev-parse', 'HEAD') : released;
}

async function setVersion(version) {
  const { version: current } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  checkVersion(version, current);
  if ((await git('status', '--porcelain')) !== '')
    throw new UsageError('the checkout has local changes: commit them first');
  const files = (await git('ls-files', '-z')).split('\0').filter((file) => file !== '' && existsSync(join(ROOT, file)));
  const changes = changedFiles({
    files,
    read: (file) => readFileSync(join(ROOT, file), 'utf8'),
    current,
    version,
    commit: await commitOf(current),
    date: new Date().toISOString().slice(0, 10),
  });
  for (const [file, text] of Object.entries(changes)) writeFileSync(join(ROOT, file), text);
  process.stdout.write(
    `${current} → ${version}: ${Object.keys(changes).length} files. Review, commit, and tag the commit v${version}\n`,
  );
}

try {
  const [version, ...more] = process.argv.slice(2);
  if (version === undefined || more.length > 0) throw new UsageError('usage: npm run release:version -- 1.2.3');
  await setVersion(version);
} catch (error) {
  process.stderr.write(`release:version: ${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
