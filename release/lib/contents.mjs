// Checks what is inside the files of a release: no path of the build machine, no test, no source map, no secret.
import { readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { filesIn } from './folders.mjs';

const FORBIDDEN_NAMES = [
  [/\.map$/, 'a source map'],
  [/\.(?:test|fixture|conformance)\.\w+$|(?:^|\/)(?:tests?|__tests__)\//, 'a test'],
  [/(?:^|\/)\.env(?:\.|$)/, 'an environment file'],
  [/(?:^|\/)\.cache(?:\/|$)|\.tsbuildinfo$|\.built-from$/, 'a file of the build'],
  [/(?:^|\/)src\//, 'a source file'],
];

const FORBIDDEN_TEXTS = [[/\/\/# sourceMappingURL=|"sourcesContent"/, 'a source map']];

/** Paths that only this machine has. A checkout in a folder such as /app is no reason to reject every text with `/app`. */
export const pathsOfMachine = (root, home = homedir(), temporary = tmpdir()) => [
  ...['apps', 'packages', 'node_modules', 'release', 'scripts', '.cache'].map((name) => join(root, name)),
  ...['.npm', '.cache', '.config'].map((name) => join(home, name)),
  join(temporary, 'hatchway-'),
];

/** Complaints about a file. `isText`: false for an executable, because Node.js itself contains texts about source maps. */
export function complaintsAbout({ path, bytes, isText = true }, machinePaths) {
  const text = bytes.toString('latin1');
  const names = FORBIDDEN_NAMES.filter(([pattern]) => pattern.test(path)).map(([, what]) => what);
  const texts = isText ? FORBIDDEN_TEXTS.filter(([pattern]) => pattern.test(text)).map(([, what]) => what) : [];
  const paths = machinePaths.filter((one) => bytes.includes(one)).map((one) => `the path ${one} of this machine`);
  return [...names, ...texts, ...paths].map((what) => `${path}: ${what}`);
}

/** Throws an error that names every forbidden file of a folder, and every file with a forbidden text. */
export function checkFolder(folder, machinePaths) {
  const complaints = filesIn(folder).flatMap((path) => {
    const bytes = readFileSync(join(folder, path));
    return complaintsAbout({ path, bytes, isText: !bytes.subarray(0, 4096).includes(0) }, machinePaths);
  });
  if (complaints.length > 0) throw new Error(`must not be in a package:\n  ${complaints.join('\n  ')}`);
}
