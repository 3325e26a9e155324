// The flags that every command of tunnel-server takes, and the config they lead to.

import { loadServerConfig, type ServerConfig } from '@tunnel/runtime';
import { Command } from 'commander';

export interface ServerFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

export const serverCommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .option('--config <file>', 'a server.toml; without it every key has its default')
    .option('--data-dir <dir>', 'where generated secrets and state are kept (default: data_dir of the config, ./data)');

export const loadConfig = (flags: ServerFlags, env: NodeJS.ProcessEnv, defaults: object = {}): ServerConfig =>
  loadServerConfig({
    env,
    defaults,
    ...(flags.config === undefined ? {} : { file: flags.config }),
    ...(flags.dataDir === undefined ? {} : { overrides: { data_dir: flags.dataDir } }),
  });
