// What the commands of tunnel-server share: their flags, the config they lead to, and columns for people.
import { loadServerConfig, type ServerConfig } from '@tunnel/runtime';
import { Command } from 'commander';
import { STACK_DEFAULTS } from '../start-notes.ts';

export interface ServerFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

export interface JsonFlags extends ServerFlags {
  readonly json?: boolean;
}

export const JSON_OPTION = ['--json', 'one JSON object on standard output'] as const;

export const serverCommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .option('--config <file>', 'a server.toml; without it every key has its default')
    .option('--data-dir <dir>', 'where generated secrets and state are kept (default: data_dir of the config, ./data)');

/** `defaults` lie under the file, `overrides` over it and over the environment. */
export const loadConfig = (
  flags: ServerFlags,
  env: NodeJS.ProcessEnv,
  { defaults = {}, overrides = {} }: { readonly defaults?: object; readonly overrides?: object } = {},
): ServerConfig =>
  loadServerConfig({
    env,
    defaults,
    ...(flags.config === undefined ? {} : { file: flags.config }),
    overrides: { ...overrides, ...(flags.dataDir === undefined ? {} : { data_dir: flags.dataDir }) },
  });

/** What `stack` runs by. */
export const loadStackConfig = (flags: ServerFlags, env: NodeJS.ProcessEnv, overrides: object = {}): ServerConfig =>
  loadConfig(flags, env, { ...(flags.config === undefined ? { defaults: STACK_DEFAULTS } : {}), overrides });

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
