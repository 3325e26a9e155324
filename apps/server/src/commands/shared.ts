// Code shared by the commands of tunnel-server: common flags, loading of the configuration, and tables for terminal output.
import { findServerFile, loadServerConfig, type ServerConfig, type ServerConfigSources } from '@tunnel/config/server';
import { Command } from 'commander';
import { backupDirProblem } from '../backup/settings.ts';
import { STACK_DEFAULTS } from '../console/start-notes.ts';

export interface ServerFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

export interface JsonFlags extends ServerFlags {
  readonly json?: boolean;
}

export const JSON_OPTION = ['--json', 'Print JSON'] as const;

export const serverCommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .option('--config <file>', 'Config file (default: server.toml in the data directory, if there is one)')
    .option(
      '--data-dir <dir>',
      'Folder for the database, secrets and state (default: data_dir of the config file, or ./data)',
    );

/**
 * Returns the config file of a command: the file named by `--config`, otherwise the file in the data directory. Undefined if there is no
 * file.
 */
export const configFileOf = ({ config, dataDir }: ServerFlags, env: NodeJS.ProcessEnv): string | undefined =>
  config ?? findServerFile(env, dataDir);

/** Loads the configuration. The file takes precedence over `defaults`; `overrides` take precedence over the file and the environment. */
export const loadConfig = (
  flags: ServerFlags,
  env: NodeJS.ProcessEnv,
  { defaults = {}, overrides = {}, ...checks }: Omit<ServerConfigSources, 'env' | 'file'> = {},
): ServerConfig =>
  loadServerConfig({
    env,
    defaults,
    ...checks,
    file: configFileOf(flags, env),
    overrides: { ...overrides, ...(flags.dataDir === undefined ? {} : { data_dir: flags.dataDir }) },
  });

/** Loads the configuration of `tunnel-server stack`, which has additional defaults if there is no config file. */
export const loadStackConfig = (flags: ServerFlags, env: NodeJS.ProcessEnv, overrides: object = {}): ServerConfig => {
  const defaults = configFileOf(flags, env) === undefined ? STACK_DEFAULTS : {};
  return loadConfig(flags, env, { defaults, overrides, findings: backupFindings });
};

/** Checks the folder of the backups, for servers that run the database. Other commands work without the folder. */
export const backupFindings = (config: ServerConfig) => {
  const expected = backupDirProblem(config);
  return expected === null ? [] : [{ path: ['backup', 'dir'], expected }];
};

/** Formats rows as a text table with aligned columns. */
export const tableText = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? '').length)));
  const lineOf = (row: readonly string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return [head, ...rows].map(lineOf).join('\n');
};
