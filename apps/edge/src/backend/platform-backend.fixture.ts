import { join } from 'node:path';
// A backend connected to a scripted platform, in the same process or over a socket, with a journal in a temporary folder. Used by tests
// only.

import { type Clock, createLogger, type Logger, Secret } from '@tunnel/runtime';
import { temporaryDirectory } from '@tunnel/testkit';
import type { TunnelAdmissionRequest, TunnelClosed, TunnelOpened } from './backend.ts';
import { PlatformBackend, type PlatformBackendOptions } from './platform-backend.ts';
import type { LinkFetch } from './platform-link.ts';
import { CREDENTIAL, ScriptedPlatform } from './scripted-platform.fixture.ts';
import { TunnelCounters } from './tunnel-counters.ts';

export const ADMIN_TOKEN = 'admin-token-of-the-test';
export const quiet = createLogger({ level: 'silent', format: 'json' });

export interface BackendOptions {
  readonly clock: Clock;
  readonly platform?: ScriptedPlatform;
  readonly fetch?: LinkFetch;
  readonly url?: string;
  readonly folder?: string;
  readonly namesFolder?: string;
  readonly logger?: Logger;
  readonly runId?: string;
  readonly certificates?: PlatformBackendOptions['certificates'];
  /** Runs as the edge of a stack, which creates a new credential at each start. */
  readonly isInStack?: boolean;
}

export interface PlatformFixture {
  readonly backend: PlatformBackend;
  readonly platform: ScriptedPlatform;
  readonly folder: string;
  readonly namesFolder: string;
  cleanUp(): Promise<void>;
}

export const makePlatformBackend = async (options: BackendOptions): Promise<PlatformFixture> => {
  const platform = options.platform ?? new ScriptedPlatform();
  const directory = await temporaryDirectory();
  const folder = options.folder ?? `${directory.path}/edge-journal`;
  const backend = new PlatformBackend({
    clock: options.clock,
    logger: options.logger ?? quiet,
    random: () => 0,
    adminToken: new Secret(ADMIN_TOKEN),
    platform: {
      fetch: options.fetch ?? platform.fetch,
      url: options.url ?? 'http://platform.internal',
      credential: new Secret(CREDENTIAL),
    },
    folder,
    namesFolder: options.namesFolder ?? directory.path,
    certificates: options.certificates ?? null,
    keyCopies: {
      file: join(options.namesFolder ?? directory.path, 'edge-known-keys.jwe'),
      isOfOneRun: options.isInStack ?? false,
    },
    runId: options.runId ?? 'run_1',
    describe: () => ({
      region: { id: 'local', name: 'Local', location: '' },
      api_url: 'http://127.0.0.1:4041',
      api_secret: 'secret-of-this-run',
      version: '0.1.0',
    }),
  });
  return { backend, platform, folder, namesFolder: directory.path, cleanUp: () => directory.close() };
};

export const askedTunnel = (
  tunnelId: string,
  accountId: string,
  given: Partial<TunnelAdmissionRequest> = {},
): TunnelAdmissionRequest => ({
  tunnelId,
  sessionId: 'ses_1',
  name: 'web',
  protocol: 'http',
  owner: { kind: 'account', accountId },
  keyId: 'key_1',
  customSubdomain: false,
  endpoint: null,
  domain: null,
  at: Date.UTC(2030, 0, 1),
  ...given,
});

export const openedTunnel = (tunnelId: string, accountId: string, given: Partial<TunnelOpened> = {}): TunnelOpened => ({
  tunnelId,
  sessionId: 'ses_1',
  name: 'web',
  protocol: 'http',
  label: `label-${tunnelId}`,
  publicUrl: `http://label-${tunnelId}.localhost:8000`,
  owner: { kind: 'account', accountId },
  keyId: 'key_1',
  clientAddr: '127.0.0.1:5000',
  counters: new TunnelCounters(),
  at: Date.UTC(2030, 0, 1),
  ...given,
});

export const closedTunnel = (tunnelId: string, accountId: string): TunnelClosed => ({
  tunnelId,
  owner: { kind: 'account', accountId },
  requests: 0,
  bytes: 0,
  at: Date.UTC(2030, 0, 1) + 1000,
});
