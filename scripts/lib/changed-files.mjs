// Finds the changed files of the checkout with git.
import { execFileSync } from 'node:child_process';
import { ROOT } from './paths.mjs';

/** Candidates for the branch that a change is based on. The first existing branch is used. */
const UPSTREAMS = ['@{upstream}', 'origin/HEAD', 'origin/main', 'main'];

/**
 * Returns the paths that differ from `base`, including files unknown to git. `base` is the commit at which the branch left its upstream.
 * If nothing differs from that commit, `base` is the commit before the last commit. Returns undefined without git, for example in an
 * unpacked archive.
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
