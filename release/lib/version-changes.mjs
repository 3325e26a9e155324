// The files that a new version changes, as a pure function of the files of the repository.
import { UsageError } from './options.mjs';

const SEMVER = /^(\d+)\.(\d+)\.(\d+)$/;

/** Refuses a version that is not newer than the current version. */
export function checkVersion(version, current) {
  if (!SEMVER.test(version)) throw new UsageError(`"${version}" is not a version such as 1.2.3`);
  const [next, now] = [version, current].map((text) => SEMVER.exec(text).slice(1).map(Number));
  const at = next.findIndex((number, index) => number !== now[index]);
  if (at === -1 || next[at] < now[at]) throw new UsageError(`${version} is not newer than ${current}`);
}

/**
 * @param {{ files: string[], read: (file: string) => string, current: string, version: string, commit: string, date: string }} repository
 * @returns {Record<string, string>} the new texts, by path
 */
export function changedFiles({ files, read, current, version, commit, date }) {
  const changes = {};
  for (const file of files) {
    if (/(?:^|\/)package\.json$/.test(file)) changes[file] = manifestWith(read(file), { current, version });
    if (/(?:^|\/)package-lock\.json$/.test(file)) changes[file] = lockWith(read(file), { current, version });
    if (/^deploy\/helm\/[^/]+\/Chart\.yaml$/.test(file)) changes[file] = chartWith(read(file), version);
    if (file === 'deploy/compose/.env.example') {
      changes[file] = read(file).replace(`HATCHWAY_VERSION=${current}\n`, `HATCHWAY_VERSION=${version}\n`);
    }
  }
  // The client names its version to the server.
  const agent = 'packages/client/src/options.ts';
  changes[agent] = read(agent).replace(`tunnel-client/${current} `, `tunnel-client/${version} `);
  changes['CHANGELOG.md'] = changelogWith(read('CHANGELOG.md'), version, date);
  changes['release/previous.json'] = jsonText({ version: current, commit });
  return Object.fromEntries(
    Object.entries(changes).filter(([file, text]) => !files.includes(file) || text !== read(file)),
  );
}

const jsonText = (value) => `${JSON.stringify(value, null, 2)}\n`;

/** The layout of a package.json stays as it is. */
function manifestWith(text, { current, version }) {
  const pattern = new RegExp(`^(\\s*"(?:version|@tunnel/[\\w-]+)": )"${current.replaceAll('.', '\\.')}"`, 'gm');
  return text.replace(pattern, `$1"${version}"`);
}

const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];

/** Packages of a registry stay as they are, even if the version is the same. */
function lockWith(text, { current, version }) {
  const lock = JSON.parse(text);
  const ours = Object.entries(lock.packages).filter(([path]) => !path.includes('node_modules/'));
  for (const entry of [lock, ...ours.map(([, one]) => one)]) {
    if (entry.version === current) entry.version = version;
    for (const dependencies of KINDS.map((kind) => entry[kind] ?? {})) {
      for (const name of Object.keys(dependencies)) {
        if (name.startsWith('@tunnel/') && dependencies[name] === current) dependencies[name] = version;
      }
    }
  }
  return jsonText(lock);
}

const chartWith = (text, version) =>
  text.replace(/^version:.*$/m, `version: ${version}`).replace(/^appVersion:.*$/m, `appVersion: "${version}"`);

const UNRELEASED = '## [Unreleased]\n';

export function changelogWith(text, version, date) {
  const start = text.indexOf(UNRELEASED);
  const rest = start === -1 ? '' : text.slice(start + UNRELEASED.length);
  const end = rest.search(/^## /m);
  const section = end === -1 ? rest : rest.slice(0, end);
  if (!/^[-*] /m.test(section)) throw new UsageError('CHANGELOG.md has no entries below [Unreleased]');
  return `${text.slice(0, start)}${UNRELEASED}\n## [${version}] - ${date}\n${rest}`;
}
