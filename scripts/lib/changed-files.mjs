// What has changed in the checkout, by git.
import { execFileSync } from 'node:child_process';
import { ROOT } from './paths.mjs';

/** The branches that a change is for; the first of them that exists. */
const UPSTREAMS = ['@{upstream}', 'origin/HEAD', 'origin/main', 'main'];

/**
 * The paths that differ from `base`, with those that git does not know yet: `base` is where the branch left its upstream, or the last commit but one when there is no
 * difference. Undefined where git cannot tell, as in an unpacked archive.
 * @returns {{ base: string, paths: string[], before: (path: string) => string } | undefined}
 */
export function changedFiles(root = ROOT) {
  const git = (...args) => {
    try {
      const stdio = ['ignore', 'pipe', 'ignore'];
      return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio, maxBuffer: 2 ** 26 });
    } catch {
      return undefined;
    }
  };
  const lines = (text = '') => text.split('\0').filter((line) => line !== '');
  const merged = UPSTREAMS.map((name) => git('merge-base', 'HEAD', name)?.trim()).find(Boolean);
  const untracked = lines(git('ls-files', '-z', '--others', '--exclude-standard'));
  for (const base of [merged, git('rev-parse', '--verify', 'HEAD~1')?.trim()].filter(Boolean)) {
    const differing = lines(git('diff', '-z', '--name-only', '--no-renames', base));
    const paths = [...new Set([...differing, ...untracked])];
    if (paths.length > 0) return { base, paths, before: (path) => git('show', `${base}:${path}`) ?? '' };
  }
  return undefined;
}
