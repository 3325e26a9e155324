// What the commands of tunnel-server share: their flags, the config they lead to, and columns for people.
import { findServerFile, loadServerConfig, type ServerConfig } from '@tunnel/config/server';
import { Command } from 'commander';
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

/** The config file of a command: the one that was named, else the one in the data directory. undefined: there is none. */
export const configFileOf = ({ config, dataDir }: ServerFlags, env: NodeJS.ProcessEnv): string | undefined =>
  config ?? findServerFile(env, dataDir);

/** `defaults` lie under the file, `overrides` over it and over the environment. */
export const loadConfig = (
  flags: ServerFlags,
  env: NodeJS.ProcessEnv,
  { defaults = {}, overrides = {} }: { readonly defaults?: object; readonly overrides?: object } = {},
): ServerConfig =>
  loadServerConfig({
    env,
    defaults,
    file: configFileOf(flags, env),
    overrides: { ...overrides, ...(flags.dataDir === undefined ? {} : { data_dir: flags.dataDir }) },
  });

/** What `stack` runs by. */
export const loadStackConfig = (flags: ServerFlags, env: NodeJS.ProcessEnv, overrides: object = {}): ServerConfig =>
  loadConfig(flags, env, { defaults: configFileOf(flags, env) === undefined ? STACK_DEFAULTS : {}, overrides });

/** Columns for people: each as wide as its widest cell. */
export const tableText = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? '').length)));
  const lineOf = (row: readonly string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return [head, ...rows].map(lineOf).join('\n');
};
