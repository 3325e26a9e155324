// Which backend an edge has: the platform of its stack, one elsewhere, or none; and what a platform is told of this edge.

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

/** The platform of the edge's own stack, on this machine: its listener for edges, and what lets this one in. */
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
  /** Holds the journal and what is known of names; the configured one unless told. */
  readonly dataDir?: string | undefined;
  /** Instead of the configured one. */
  readonly platform?: StackPlatform | undefined;
  /** How the platform shows itself to this run of the edge. */
  readonly apiSecret: Secret;
  /** Empty until the REST is open. */
  readonly apiUrl: () => string;
  /** null until the ports for clients and visitors are open. */
  readonly openPorts: () => OpenPorts | null;
  /** A live tls tunnel has the host. */
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
    // In a stack as well: an edge that was killed must not wait for a platform that was killed beside it.
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
 * Without a port for TLS nobody would see them. In a stack no copies are kept: its platform starts beside the edge, from the same disk, which has
 * them and their key already; and the edge's credential is a new one each time, so that no copy could be opened again.
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
  readonly http: { readonly port: number };
  readonly https: { readonly port: number } | null;
  /** Clients must speak TLS. */
  readonly isControlSecure: boolean;
  /** A certificate is for the domain at this moment. */
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
    // By one port with the visitors, where that is TLS: a firewall on the way knows it.
    control: `${controlHost(control.host, domain)}:${isOnPublic ? https.port : control.port}`,
    control_tls: isControlSecure,
    http_url: `${scheme}://${domain}${port === USUAL_PORT[scheme] ? '' : `:${port}`}`,
  };
};

/** Elsewhere the address that is listened on may be everybody's, or a private one; the domain leads to us in any case. */
const controlHost = (host: string, domain: string): string => {
  if (!isLoopbackHost(host)) return domain;
  return host.includes(':') ? `[${host}]` : host;
};
