// The entries of `tunnels` in config.yml as the client takes them: what is published, and what others publish.
import {
  type ConnectPeerOptions,
  type HealthCheck,
  type LocalSpec,
  protocolTraits,
  TunnelPolicy,
  type TunnelSpec,
} from '@tunnel/client';
import { type ClientTunnel } from '@tunnel/config/client';
import { readPolicySource } from '@tunnel/config/policy';
import type { Io } from '../io/io.ts';

export type NamedTunnel = readonly [name: string, entry: ClientTunnel];

/** What is published, and what others publish. Policies are read now, and so is what they name. Throws a Fault or a ConfigProblem. */
export const planOf = (entries: readonly NamedTunnel[], io: Pick<Io, 'env' | 'home'>, wait = false) => ({
  tunnels: published(entries).map(([name, entry]) => ({ ...specOf(name, entry), ...policyOf(entry, io) })),
  peers: entries.flatMap(([name, entry]) => peerOf(name, entry, wait)),
});

/** The same without their policies: for whoever looks at what they lead to. */
export const localPlanOf = (entries: readonly NamedTunnel[]): TunnelSpec[] =>
  published(entries).map((entry) => specOf(...entry));

const published = (entries: readonly NamedTunnel[]): NamedTunnel[] =>
  entries.filter(([, { p2p_connect }]) => p2p_connect === undefined);

/** Files that are read besides config.yml: a change of one is a change of its tunnel. */
export const policyFilesOf = (entries: readonly NamedTunnel[]): string[] => [
  ...new Set(entries.flatMap(([, { policy }]) => (typeof policy === 'string' ? [policy] : []))),
];

const policyOf = ({ policy }: ClientTunnel, { env, home }: Pick<Io, 'env' | 'home'>): Pick<TunnelSpec, 'policy'> => {
  if (policy === undefined) return {};
  const source = typeof policy === 'string' ? readPolicySource({ file: policy, env, home }) : policy;
  return { policy: TunnelPolicy.of([source]) };
};

const peerOf = (name: string, entry: ClientTunnel, wait: boolean): ConnectPeerOptions[] => {
  const { p2p_connect: p2pName, p2p_secret: secret, p2p_service: service, p2p_direct: direct } = entry;
  const { listen_host: listenHost, listen_port: listenPort } = entry;
  if (p2pName === undefined || secret === undefined || listenPort === undefined) return [];
  return [{ name, p2pName, secret, service, direct, listenHost, listenPort, wait }];
};

export const specOf = (name: string, entry: ClientTunnel): TunnelSpec => ({
  protocol: entry.proto,
  name,
  ...localOf(entry),
  ...(entry.p2p_publish === undefined ? {} : publishedFieldsOf(entry, entry.p2p_publish)),
  ...(protocolTraits(entry.proto).carriesRequests ? httpFieldsOf(entry) : {}),
  ...(entry.subdomain === undefined ? {} : { subdomain: entry.subdomain }),
  ...(entry.domain === undefined ? {} : { domain: entry.domain }),
  ...(entry.remote_port === undefined ? {} : { remotePort: entry.remote_port }),
  ...(entry.idle_secs === undefined ? {} : { idleSecs: entry.idle_secs }),
  ...(entry.proxy_protocol === undefined ? {} : { proxyProtocol: entry.proxy_protocol }),
  ...(entry.policy_revision === undefined ? {} : { policyRevision: entry.policy_revision }),
  ...(entry.services === undefined ? {} : { services: entry.services }),
  ...(entry.group === undefined ? {} : { group: entry.group }),
  ...(entry.group_key === undefined ? {} : { groupKey: entry.group_key }),
  ...(entry.health_check === undefined ? {} : { healthCheck: healthCheckOf(entry.health_check) }),
});

/** The file was checked: one of them is there. */
export const localOf = ({
  local_host,
  local_port,
  local_socket,
  allow_control_socket,
  files,
}: ClientTunnel): LocalSpec => ({
  ...(local_port === undefined ? {} : { localHost: local_host, localPort: local_port }),
  ...(local_socket === undefined ? {} : { localSocket: local_socket }),
  ...(allow_control_socket ? { allowControlSocket: true } : {}),
  ...(files === undefined ? {} : { files }),
});

const publishedFieldsOf = (entry: ClientTunnel, p2pName: string): Partial<TunnelSpec> => ({
  ...{ p2pName, service: entry.p2p_service, allow: entry.p2p_allow, direct: entry.p2p_direct },
  ...(entry.p2p_secret === undefined ? {} : { secret: entry.p2p_secret }),
});

/** Keys that have a default whatever the tunnel is. */
const httpFieldsOf = (entry: ClientTunnel): Partial<TunnelSpec> => ({
  hostHeader: entry.host_header,
  localProtocol: entry.local_protocol,
  localTlsVerify: entry.local_tls_verify,
  capture: entry.capture,
});

const healthCheckOf = (entry: NonNullable<ClientTunnel['health_check']>): HealthCheck => ({
  type: entry.type,
  path: entry.path,
  intervalSecs: entry.interval_secs,
  timeoutSecs: entry.timeout_secs,
  maxFailed: entry.max_failed,
  expect2xx: entry.expect_2xx,
  alertWebhook: entry.alert_webhook,
});
