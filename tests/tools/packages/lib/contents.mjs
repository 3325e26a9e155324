// The files of packages and root file systems with owner and mode, and their comparison with the lists in this folder.
import { spawnSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

export function output(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: OUTPUT_MAX_BYTES,
    ...options,
  });
  if (status !== 0) throw new Error(`${command} ${args.slice(0, 4).join(' ')}: ${error?.message ?? stderr.trim()}`);
  return stdout;
}

/** `rwxr-xr-x` as 0755. Letters for further bits, such as setuid, give a mode that is on no list. */
const modeOf = (letters) => {
  if (!/^(?:[r-][w-][x-]){3}$/.test(letters)) return letters;
  const bits = [...letters].map((letter) => (letter === '-' ? '0' : '1')).join('');
  return `0${Number.parseInt(bits, 2).toString(8).padStart(3, '0')}`;
};

/** Entries as { path, mode, owner }; the mode of a symbolic link is `link`, of a folder `folder` plus its mode. */
export function debEntries(file) {
  const listed = output('sh', ['-c', 'dpkg-deb --fsys-tarfile "$0" | tar -tv', file]);
  return listed
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, kind, letters, owner, name] = /^(.)(\S{9})\S* (\S+) +\d+ \S+ \S+ \.?(.*)$/.exec(line);
      const path = name.replace(/ -> .*$/, '').replace(/(.)\/$/, '$1');
      return { path, mode: entryMode(kind, modeOf(letters)), owner };
    })
    .filter(({ path }) => path !== '/');
}

const entryMode = (kind, mode) => ({ l: 'link', d: `folder ${mode}`, '-': mode })[kind] ?? kind;

/** Reads the output of `rpm -qp --dump`. */
export const rpmEntries = (dump) =>
  dump
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [path, , , , mode, user, group] = line.split(' ');
      const kind = { '012': 'l', '004': 'd', '010': '-' }[mode.padStart(7, '0').slice(0, 3)];
      return { path, mode: entryMode(kind, `0${mode.slice(-3)}`), owner: `${user}/${group}` };
    });

const patternOf = (glob) =>
  new RegExp(
    `^${glob
      .split(/(\*\*|\*)/)
      .map((part) => ({ '**': '.+', '*': '[^/]*' })[part] ?? part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('')}$`,
  );

/** Differences between the entries of a package and the list of this repository, as lines. */
export function differences(listFile, format, entries) {
  const wanted = readFileSync(listFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(' '))
    .filter(([, , only]) => only === undefined || only === format)
    .map(([mode, glob]) => ({ mode, glob, pattern: patternOf(glob), found: 0 }));
  const wrong = [];
  for (const { path, mode, owner } of entries) {
    if (owner !== 'root/root') wrong.push(`${path} belongs to ${owner}`);
    if (mode.startsWith('folder')) {
      if (mode !== 'folder 0755') wrong.push(`${path} is a ${mode}`);
      continue;
    }
    const rule = wanted.find((one) => one.mode === mode && one.pattern.test(path));
    if (rule === undefined) wrong.push(`${mode} ${path} is not on the list`);
    else rule.found += 1;
  }
  return [...wrong, ...wanted.filter(({ found }) => found === 0).map(({ mode, glob }) => `${mode} ${glob} is missing`)];
}

/** The entries of a root file system as lines, without the given folders and files. */
export function snapshot(root, without) {
  const lines = [];
  const visit = (folder) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (without.includes(path)) continue;
      lines.push(`${path} ${factsOf(join(root, path))}`);
      if (entry.isDirectory()) visit(path);
    }
  };
  visit('');
  return lines;
}

function factsOf(path) {
  const stats = lstatSync(path);
  const rights = `${(stats.mode & 0o7777).toString(8)} ${stats.uid}:${stats.gid}`;
  if (stats.isSymbolicLink()) return `${rights} to ${readlinkSync(path)}`;
  return stats.isFile() ? `${rights} ${stats.size} bytes` : rights;
}
