// Saves the settings of a start with `--public` to a file in the data directory, so that later starts need no flags and all other
// commands use the same settings.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SERVER_FILE, type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { writeAtomicSync } from '@tunnel/runtime';
import { STACK_DEFAULTS } from '../console/start-notes.ts';
import { type PublicFlags, publicOverrides } from './public-flags.ts';

type Table = { readonly [key: string]: string | number | boolean | Table };

/**
 * Returns the text of a server.toml that starts the same server without flags: the keys set by the flags, and the defaults of a start
 * without a file.
 */
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

/** Returns the lines of a TOML table. Keys come before nested tables, as TOML requires. */
const tableLines = (table: Table, path: readonly string[]): string[] => {
  const keys: string[] = [];
  const below: string[] = [];
  for (const [key, value] of Object.entries(table)) {
    if (typeof value === 'object') below.push(...tableLines(value, [...path, key]));
    else keys.push(`${key} = ${JSON.stringify(value)}`);
  }
  return [...(keys.length === 0 || path.length === 0 ? keys : ['', `[${path.join('.')}]`, ...keys]), ...below];
};

/**
 * Writes the settings file unless the file exists. Returns the path if the file was written, otherwise null. The caller must hold the
 * lock of the data directory.
 */
export const keepSettings = (dataDir: string, flags: PublicFlags): string | null => {
  const file = join(dataDir, SERVER_FILE);
  if (existsSync(file)) return null;
  try {
    // The atomic write leaves no incomplete file after a crash. The next start would read an incomplete file.
    writeAtomicSync(file, settingsText(flags), { soleWriter: true });
    return file;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Fault('CONFIG_DATA_DIR', { dir: dataDir, reason }, { cause: error });
  }
};

/**
 * Returns the keys that the flags of this start set to a different value than the settings file. All other commands use the file's
 * values.
 */
export const keysBesideFile = (flags: PublicFlags, ofFile: ServerConfig): string[] =>
  differingKeys(publicOverrides(flags) as Table, ofFile as unknown as Table, []);

const differingKeys = (wanted: Table, found: Table, path: readonly string[]): string[] =>
  Object.entries(wanted).flatMap(([key, value]) => {
    const at = [...path, key];
    if (typeof value === 'object') return differingKeys(value, found[key] as Table, at);
    return found[key] === value ? [] : [at.join('.')];
  });
