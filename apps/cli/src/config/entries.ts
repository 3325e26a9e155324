// Adds an entry to `tunnels` in config.yml. Every other line of the file stays unchanged, including comments and order.
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { type ClientConfig, loadClientConfig } from '@tunnel/config/client';
import { PolicySource } from '@tunnel/config/policy';
import type { Io } from '../io/io.ts';
import { writePrivateFile } from '../io/private-files.ts';
import { misuse } from '../io/problem-report.ts';
import { tryConfig } from './file.ts';
import { withConfigLock, yamlScalar } from './keys.ts';

/** An entry with the keys of config.yml. Keys with the value undefined are not written. */
export interface EntryKeys {
  readonly [key: string]: string | number | boolean | EntryKeys | OneLine | undefined;
}

/** A list or table written as JSON on one line, which is valid YAML. */
export class OneLine {
  readonly value: object;

  constructor(value: object) {
    this.value = value;
  }
}

/**
 * Adds a tunnel to config.yml. Throws before writing if the file is invalid, if another tunnel has the name, or if lines cannot be added
 * because of the file's layout.
 */
export const saveTunnelEntry = (file: string, name: string, entry: EntryKeys, io: Pick<Io, 'env' | 'home'>): void => {
  // The target of a symbolic link is written, so that the link itself stays.
  const real = existsSync(file) ? realpathSync(file) : file;
  withConfigLock(real, () => addEntry(file, real, [name, entry], io));
};

const addEntry = (
  file: string,
  real: string,
  [name, entry]: readonly [string, EntryKeys],
  io: Pick<Io, 'env' | 'home'>,
): void => {
  const before = existsSync(real) ? loadClientConfig({ file: real, env: io.env, home: io.home }) : null;
  const known = before !== null && Object.hasOwn(before.tunnels, name) ? before.tunnels[name] : undefined;
  if (known !== undefined) {
    if (isSaidBy(known, entry)) return;
    throw misuse(`${file} already has a tunnel '${name}'. Edit it there, or choose another --name.`);
  }
  const text = withEntry(before === null ? '' : readFileSync(real, 'utf8'), entryLines(name, entry));
  const after = text === null ? null : tryConfig(real, text, io);
  if (text === null || after === null || !isAddition(before, after, name, entry)) {
    throw misuse(`cannot edit ${file}. Add this under \`tunnels:\` by hand: ${flow({ [name]: entry })}.`);
  }
  writePrivateFile(real, text, { mode: before === null ? 0o600 : statSync(real).mode & 0o777 });
};

/** Returns the text of a new config file. */
export const newConfigText = (keys: EntryKeys, tunnels: ReadonlyMap<string, EntryKeys>): string =>
  [
    ...Object.entries(keys).flatMap(([key, value]) =>
      value === undefined || typeof value === 'object' ? [] : [`${key}: ${yamlScalar(value)}`],
    ),
    ...(tunnels.size === 0 ? [] : ['tunnels:']),
    ...[...tunnels].flatMap(([name, entry]) => indented(entryLines(name, entry), STEP)),
    '',
  ].join('\n');

const TUNNELS = /^(tunnels|"tunnels"|'tunnels')[ \t]*:[ \t]*(\{[ \t]*\})?([ \t]*#.*)?$/;
const STEP = '  ';

/** Returns the text of the file with an added entry. Returns null if the tunnels of the file are not written below each other. */
const withEntry = (text: string, entry: readonly string[]): string | null => {
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n';
  // Every existing line keeps its line break, because a file can contain both kinds.
  const breaks = text.match(/\r?\n/g) ?? [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  const count = lines.length;
  let added = count;
  const at = lines.findIndex((line) => TUNNELS.test(line));
  if (at < 0) {
    if (lines.some((line) => /^["']?tunnels\b/.test(line))) return null;
    const gap = lines.length > 0 && lines.at(-1) !== '' ? [''] : [];
    lines.push(...gap, 'tunnels:', ...indented(entry, STEP));
  } else {
    // An empty table `{}` is removed, because entries follow on the lines below.
    lines[at] = (lines[at] ?? '').replace(/:[ \t]*\{[ \t]*\}/, ':');
    const below = lines.slice(at + 1);
    const next = below.findIndex((line) => /^[^\s#]/.test(line));
    const block = next < 0 ? below : below.slice(0, next);
    // Comments at the left margin belong to the key below the comment.
    const length = block.findLastIndex((line) => /^[ \t]+\S/.test(line)) + 1;
    const margin = /^ +(?=[^\s#])/.exec(block.find((line) => /^ +[^\s#]/.test(line)) ?? '')?.[0] ?? STEP;
    added = at + 1 + length;
    lines.splice(added, 0, ...indented(entry, margin));
  }
  breaks.splice(added, 0, ...Array.from({ length: lines.length - count }, () => lineBreak));
  return lines.map((line, index) => line + (breaks[index] ?? lineBreak)).join('');
};

const indented = (lines: readonly string[], margin: string): string[] => lines.map((line) => margin + line);

const entryLines = (name: string, entry: EntryKeys): string[] => [
  `${yamlScalar(name)}:`,
  ...Object.entries(entry).flatMap(([key, value]) => {
    if (value === undefined) return [];
    if (value instanceof OneLine) return [`${STEP}${key}: ${JSON.stringify(value.value)}`];
    if (typeof value === 'object') return indented(entryLines(key, value), STEP);
    return [`${STEP}${key}: ${yamlScalar(value)}`];
  }),
];

/** Formats the entry on one line, for the user to copy. */
const flow = (entry: EntryKeys): string =>
  `{ ${Object.entries(entry)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${yamlScalar(key)}: ${flowValue(value)}`)
    .join(', ')} }`;

const flowValue = (value: EntryKeys[string]): string => {
  if (value instanceof OneLine) return JSON.stringify(value.value);
  return typeof value === 'object' ? flow(value) : yamlScalar(value ?? '');
};

const isAddition = (before: ClientConfig | null, after: ClientConfig, name: string, entry: EntryKeys): boolean => {
  const { [name]: added, ...tunnels } = after.tunnels;
  if (added === undefined || !isSaidBy(added, entry)) return false;
  // All secrets compare as equal masks. Their lines are not changed by the edit.
  return before === null || JSON.stringify({ ...after, tunnels }) === JSON.stringify(before);
};

const isSaidBy = (said: object, entry: EntryKeys): boolean =>
  Object.entries(entry).every(([key, value]) => {
    const found: unknown = (said as Record<string, unknown>)[key];
    if (value === undefined) return true;
    if (value instanceof OneLine) {
      return found instanceof PolicySource && JSON.stringify(found.value) === JSON.stringify(value.value);
    }
    if (typeof value !== 'object') return found === value;
    return typeof found === 'object' && found !== null && isSaidBy(found, value);
  });
