// Which backend an edge has: the platform of its stack, one elsewhere, or none; and what a platform is told of this edge.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Heartbeat } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type Clock, type Logger, randomId, Secret, type ServerConfig } from '@tunnel/runtime';
import type { Backend } from './backend.ts';
import { PlatformBackend, type PlatformBackendOptions } from './platform-backend.ts';
import { StandaloneBackend } from './standalone-backend.ts';

const JOURNAL_FOLDER = 'edge-journal';

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
}

export const chooseBackend = (config: ServerConfig, choice: BackendChoice): Backend => {
  const { clock, logger, random, adminToken, version } = choice;
  const platform = platformOf(config, choice.platform);
  if (platform === null) {
    const { dataDir } = choice;
    return new StandaloneBackend({ clock, logger, adminToken, keys: config.auth.keys, names: config.names, dataDir });
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
    if (text === '') throw new Error('it is empty');
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
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;
const USUAL_PORT = { http: 80, https: 443 } as const;

export const describeReach = (
  { server }: { readonly server: Pick<ServerConfig['server'], 'domain' | 'control_on_public'> },
  { control, http, https }: OpenPorts,
): NonNullable<Heartbeat['reach']> => {
  const { domain } = server;
  const { scheme, port } =
    https === null ? ({ scheme: 'http', port: http.port } as const) : ({ scheme: 'https', port: https.port } as const);
  return {
    // By one port with the visitors, where that is TLS: a firewall on the way knows it.
    control: `${controlHost(control.host, domain)}:${server.control_on_public && https !== null ? https.port : control.port}`,
    control_tls: https !== null,
    http_url: `${scheme}://${domain}${port === USUAL_PORT[scheme] ? '' : `:${port}`}`,
  };
};

/** Elsewhere the address that is listened on may be everybody's, or a private one; the domain leads to us in any case. */
const controlHost = (host: string, domain: string): string => {
  if (!LOOPBACK.test(host)) return domain;
  return host.includes(':') ? `[${host}]` : host;
};
