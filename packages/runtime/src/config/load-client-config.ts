import type { ClientConfig } from './client/schema.ts';
export interface ClientConfigSources {
  readonly file: string;
  /** For `group_key_env`. */
  readonly env: NodeJS.ProcessEnv;
}
export const loadClientConfig = (_sources: ClientConfigSources): ClientConfig => {
  throw new Error('being written');
};
