// The settings of a start with `--public` as a file in the data directory, so that every other command sees them and a later start needs no flags.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SERVER_FILE, type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { writeAtomicSync } from '@tunnel/runtime';
import { STACK_DEFAULTS } from '../console/start-notes.ts';
import { type PublicFlags, publicOverrides } from './public-flags.ts';

type Table = { readonly [key: string]: string | number | boolean | Table };

/** A server.toml that is the same start without flags: the keys of the flags, and what a start without a file has besides. */
export const settingsText = (flags: PublicFlags): string => {
  const { platform, ...flagTables } = publicOverrides(flags) as { readonly [table: string]: Table };
  const { platform: planTables, ...defaults } = STACK_DEFAULTS;
  const tables: Table = { ...flagTables, ...defaults, platform: { ...platform, ...planTables } };
  return [
    `# Written by the first start with --public ${flags.public ?? ''}. You can edit this file.`,
    '# All tunnel-server commands read this file; flags override it. All keys: docs/configuration.md.',
    ...tableLines(tables, []),
    '',
  ].join('\n');
};

/** Keys come before the tables below them, as TOML needs it. */
const tableLines = (table: Table, path: readonly string[]): string[] => {
  const keys: string[] = [];
  const below: string[] = [];
  for (const [key, value] of Object.entries(table)) {
    if (typeof value === 'object') below.push(...tableLines(value, [...path, key]));
    else keys.push(`${key} = ${JSON.stringify(value)}`);
  }
  return [...(keys.length === 0 || path.length === 0 ? keys : ['', `[${path.join('.')}]`, ...keys]), ...below];
};

/** Writes the file unless there is one. Gives its path when it was written, else null. The caller holds the data directory. */
export const keepSettings = (dataDir: string, flags: PublicFlags): string | null => {
  const file = join(dataDir, SERVER_FILE);
  if (existsSync(file)) return null;
  try {
    // A crash in between leaves no half of a file that the next start would read.
    writeAtomicSync(file, settingsText(flags), { soleWriter: true });
    return file;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Fault('CONFIG_DATA_DIR', { dir: dataDir, reason }, { cause: error });
  }
};

/** The keys that the flags of this start set to something else than the file does, on which every other command goes by the file. */
export const keysBesideFile = (flags: PublicFlags, ofFile: ServerConfig): string[] =>
  differingKeys(publicOverrides(flags) as Table, ofFile as unknown as Table, []);

const differingKeys = (wanted: Table, found: Table, path: readonly string[]): string[] =>
  Object.entries(wanted).flatMap(([key, value]) => {
    const at = [...path, key];
    if (typeof value === 'object') return differingKeys(value, found[key] as Table, at);
    return found[key] === value ? [] : [at.join('.')];
  });
