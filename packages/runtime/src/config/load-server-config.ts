import type { ServerConfig } from './server/schema.ts';
export interface ServerConfigSources {
  /** Absent: built-in values, `defaults`, the environment and `overrides` alone. */
  readonly file?: string;
  readonly env: NodeJS.ProcessEnv;
  /** Laid below the file, above the built-in defaults. */
  readonly defaults?: object;
  /** Laid above all, for flags of the command line. */
  readonly overrides?: object;
}
export const loadServerConfig = (_sources: ServerConfigSources): ServerConfig => {
  throw new Error('being written');
};
