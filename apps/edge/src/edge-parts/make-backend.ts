// Which backend an edge has: a platform in this process, one elsewhere, or none.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Heartbeat } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { randomId, Secret, type ServerConfig } from '@tunnel/runtime';
import type { Backend } from '../backend/backend.ts';
import { PlatformBackend, type PlatformBackendOptions } from '../backend/platform-backend.ts';
import { StandaloneBackend } from '../backend/standalone-backend.ts';
import { DEVELOPMENT, type EdgeDeps } from './edge-deps.ts';

const JOURNAL_FOLDER = 'edge-journal';
/** Nobody resolves it: requests to it stay in the process. */
const IN_PROCESS_URL = 'http://platform.internal';

export interface ShownToPlatform {
  /** How the platform shows itself to this run of the edge. */
  readonly apiSecret: Secret;
  /** Empty until the REST is open. */
  readonly apiUrl: () => string;
  /** undefined until the ports for clients and visitors are open. */
  readonly reach: () => Heartbeat['reach'];
}

export const makeBackend = (config: ServerConfig, deps: EdgeDeps, shown: ShownToPlatform): Backend => {
  if (deps.backend !== undefined) return deps.backend;
  const { clock, logger, adminToken, random = Math.random, version = DEVELOPMENT } = deps;
  const platform = platformOf(config, deps);
  if (platform === null) return new StandaloneBackend({ adminToken, keys: config.auth.keys });
  const { region } = config;
  const reach = (): Pick<Heartbeat, 'reach'> => {
    const known = shown.reach();
    return known === undefined ? {} : { reach: known };
  };
  return new PlatformBackend({
    clock,
    logger,
    random,
    adminToken,
    platform,
    folder: join(deps.dataDir ?? config.data_dir, JOURNAL_FOLDER),
    runId: randomId('run'),
    describe: () => ({
      region: { id: region.id, name: region.name, location: region.location },
      api_url: shown.apiUrl(),
      api_secret: shown.apiSecret.reveal(),
      version,
      ...reach(),
    }),
  });
};

const platformOf = ({ server }: ServerConfig, { platform }: EdgeDeps): PlatformBackendOptions['platform'] | null => {
  if (platform !== undefined) return { ...platform, url: IN_PROCESS_URL };
  if (server.platform_url === '') return null;
  const credential = readCredential(server.platform_credential_file);
  return { fetch: (request) => fetch(request), url: server.platform_url, credential };
};

const readCredential = (file: string): Secret => {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if (text === '') throw new Error('it is empty');
    return new Secret(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason }, { cause: error });
  }
};
