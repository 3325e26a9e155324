// Saves the settings of a start with `--public` to a file in the data directory, so that later starts need no flags and all other
// commands use the same settings.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SERVER_FILE, type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { writeAtomicSync } from '@tunnel/runtime';
import { STACK_DEFAULTS } from '../console/start-notes.ts';
import { settingsText, type Table } from '../setup/settings-text.rules.ts';
import { type PublicFlags, publicOverrides } from './public-flags.ts';

/** Settings of a start with flags and without a file, as tables of server.toml. */
export const settingsOf = (flags: PublicFlags): Table => {
  const { platform, ...flagTables } = publicOverrides(flags) as { readonly [table: string]: Table };
  const { platform: planTables, ...defaults } = STACK_DEFAULTS;
  return { ...flagTables, ...defaults, platform: { ...platform, ...planTables } };
};

/**
 * Returns the text of a server.toml that starts the same server without flags: the keys set by the flags, and the defaults of a start
 * without a file.
 */
export const keptText = (flags: PublicFlags): string =>
  settingsText(
    [
      `Written by the first start with --public ${flags.public ?? ''}. You can edit this file.`,
      'All tunnel-server commands read this file; flags override it. All keys: docs/configuration.md.',
    ],
    settingsOf(flags),
  );

/**
 * Writes the settings file unless the file exists. Returns the path if the file was written, otherwise null. The caller must hold the
 * lock of the data directory.
 */
export const keepSettings = (dataDir: string, flags: PublicFlags): string | null => {
  const file = join(dataDir, SERVER_FILE);
  if (existsSync(file)) return null;
  try {
    // The atomic write leaves no incomplete file after a crash. The next start would read an incomplete file.
    writeAtomicSync(file, keptText(flags), { soleWriter: true });
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
