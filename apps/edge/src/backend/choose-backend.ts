// Chooses the backend of an edge: the platform of the same stack, a remote platform, or a standalone backend. Also composes the edge's
// description for the platform.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ServerConfig } from '@tunnel/config/server';
import type { Heartbeat } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { isLoopbackHost } from '@tunnel/rules/net';
import { type Clock, type Logger, randomId, Secret } from '@tunnel/runtime';
import type { Backend } from './backend.ts';
import { StandaloneCertificates } from './certificates/standalone-certificates.ts';
import { PlatformBackend, type PlatformBackendOptions } from './platform-backend.ts';
import { StandaloneBackend } from './standalone-backend.ts';

const JOURNAL_FOLDER = 'edge-journal';
const KEYS_FILE = 'edge-known-keys.jwe';
const COPIES_FOLDER = 'certificates';

/**
 * Platform in the edge's stack, on the same computer: URL of the platform's listener for edges, and the credential that admits this edge.
 */
export interface StackPlatform {
  readonly url: string;
  readonly credential: Secret;
}

export interface BackendChoice {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly adminToken: Secret;
  readonly version: string;
  /** Folder of the journal and of known names. Default: the configured data folder. */
  readonly dataDir?: string | undefined;
  /** Platform of the same stack. Replaces the configured platform. */
  readonly platform?: StackPlatform | undefined;
  /** Secret with which the platform authenticates to the current run of the edge. */
  readonly apiSecret: Secret;
  /** Returns the URL of the edge's REST API. Empty until the port is open. */
  readonly apiUrl: () => string;
  /** Returns the open ports of the edge. Null until the ports for clients and visitors are open. */
  readonly openPorts: () => OpenPorts | null;
  /** Whether an open tls tunnel has the host, which means that the edge passes TLS connections through. */
  readonly isPassedThrough: (host: string) => boolean;
}

export const chooseBackend = (config: ServerConfig, choice: BackendChoice): Backend => {
  const { clock, logger, random, adminToken, version } = choice;
  const platform = platformOf(config, choice.platform);
  if (platform === null) {
    const { dataDir } = choice;
    const certificates = config.acme.enabled ? keeperOf(config, choice) : undefined;
    const { names, auth } = config;
    return new StandaloneBackend({ clock, logger, adminToken, keys: auth.keys, names, dataDir, certificates });
  }
  const { region, limits } = config;
  const dataDir = choice.dataDir ?? config.data_dir;
  const reach = (): Pick<Heartbeat, 'reach'> => {
    const ports = choice.openPorts();
    return ports === null ? {} : { reach: describeReach(config, ports) };
  };
  return new PlatformBackend({
    clock,
    logger,
    random,
    adminToken,
    platform,
    folder: join(dataDir, JOURNAL_FOLDER),
    namesFolder: dataDir,
    certificates: certificatesOf(config, dataDir, choice.platform !== undefined),
    // Key copies are kept even in a stack: a restarted edge must not wait for a platform that was killed at the same time.
    keyCopies: { file: join(dataDir, KEYS_FILE), isOfOneRun: choice.platform !== undefined },
    runId: randomId('run'),
    describe: () => ({
      region: { id: region.id, name: region.name, location: region.location },
      api_url: choice.apiUrl(),
      api_secret: choice.apiSecret.reveal(),
      version,
      ...reach(),
      port_ranges: { tcp: [...limits.tcp_port_range], udp: [...limits.udp_port_range] },
    }),
  });
};

const keeperOf = (config: ServerConfig, choice: BackendChoice): StandaloneCertificates => {
  const { clock, random, logger, isPassedThrough } = choice;
  const dataDir = choice.dataDir ?? config.data_dir;
  return new StandaloneCertificates({ config, dataDir, isPassedThrough, clock, random, logger });
};

/**
 * Returns the certificate options, or null if the edge has no TLS port, because certificates would not be used. A stack keeps no copies:
 * its platform starts beside the edge and has the certificates and their key on the same disk. The edge's credential also changes with
 * each start of a stack, so old copies could not be decrypted.
 */
const certificatesOf = (
  { tls, acme }: ServerConfig,
  dataDir: string,
  isInStack: boolean,
): PlatformBackendOptions['certificates'] => {
  if (!acme.enabled && tls.cert_path === '') return null;
  return { copies: isInStack ? null : join(dataDir, COPIES_FOLDER) };
};

const platformOf = (
  { server }: ServerConfig,
  ofStack: StackPlatform | undefined,
): PlatformBackendOptions['platform'] | null => {
  if (ofStack !== undefined) return { fetch: (request) => fetch(request), ...ofStack };
  if (server.platform_url === '') return null;
  const credential = readCredential(server.platform_credential_file);
  return { fetch: (request) => fetch(request), url: server.platform_url, credential };
};

const readCredential = (file: string): Secret => {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if (text === '') throw new Error('the file is empty');
    return new Secret(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason }, { cause: error });
  }
};

// ---- how people and their clients come to this edge, as the platform shows it to them ----

export interface OpenPorts {
  readonly control: { readonly host: string; readonly port: number };
  /** Ports that visitors use. */
  readonly http: { readonly port: number };
  readonly https: { readonly port: number } | null;
  /** Whether clients must use TLS. */
  readonly isControlSecure: boolean;
  /** Whether a certificate currently covers the edge's domain. */
  readonly isCovered: boolean;
}

const USUAL_PORT = { http: 80, https: 443 } as const;

export const describeReach = (
  { server }: { readonly server: Pick<ServerConfig['server'], 'domain' | 'control_on_public'> },
  { control, http, https, isControlSecure, isCovered }: OpenPorts,
): NonNullable<Heartbeat['reach']> => {
  const { domain } = server;
  const { scheme, port } =
    https !== null && isCovered
      ? ({ scheme: 'https', port: https.port } as const)
      : ({ scheme: 'http', port: http.port } as const);
  const isOnPublic = server.control_on_public && https !== null && isControlSecure;
  return {
    // If the control connection can use the visitors' TLS port, clients are told that port, because firewalls along the way usually allow
    // it.
    control: `${controlHost(control.host, domain)}:${isOnPublic ? https.port : control.port}`,
    control_tls: isControlSecure,
    http_url: `${scheme}://${domain}${port === USUAL_PORT[scheme] ? '' : `:${port}`}`,
  };
};

/**
 * Returns the host at which clients reach the control port. Unless the port is on loopback, the host is the domain: the listening address
 * can be a wildcard or private, but the domain always points to the edge.
 */
const controlHost = (host: string, domain: string): string => {
  if (!isLoopbackHost(host)) return domain;
  return host.includes(':') ? `[${host}]` : host;
};
