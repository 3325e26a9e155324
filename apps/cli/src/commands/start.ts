// `tunnel start [NAME…]`: opens the tunnels of config.yml, all of them or those named.
// `tunnel check`: reads config.yml, says what it would open, connects to nothing.
import {
  type ConnectPeerOptions,
  checkPeerOptions,
  checkTunnelSpec,
  type HealthCheck,
  type LocalSpec,
  localText,
  protocolTraits,
  type TunnelSpec,
} from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { ClientTunnel } from '@tunnel/runtime';
import { Command } from 'commander';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { addConnectionFlags, addRequestFlags, type ConnectionFlags, type RequestFlags } from '../flags.ts';
import type { Io } from '../io.ts';
import { runTunnels } from '../run-tunnels.ts';
import { defaultConfigPath, type LoadedConfig, loadConfig, resolveSettings } from '../settings.ts';

export const startCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addConnectionFlags(
    addRequestFlags(
      new Command('start')
        .description('open the tunnels of config.yml, all of them or those named')
        .argument('[name...]', 'names of tunnels in config.yml'),
    ),
  )
    .addHelpText('after', '\nExample:\n  $ tunnel start db cache --config ./tunnel.yml --json')
    .action(async (names: string[], flags: ConnectionFlags & RequestFlags) => {
      const config = loadConfig(flags.config, io);
      if (config === null) {
        throw new Fault('CONFIG_FILE_UNREADABLE', { file: defaultConfigPath(io), reason: 'no such file' });
      }
      const chosen = chooseTunnels(config, names);
      const settings = resolveSettings(flags, config, io);
      // Two selections from one file are two clients; the same one in another order is not.
      const stateKey = `start|${config.path}|${[...names].sort().join(',')}`;
      finish(await runTunnels({ settings, flags, stateKey, ...planOf(chosen, flags.wait) }, io));
    });

type NamedTunnel = readonly [name: string, entry: ClientTunnel];

const chooseTunnels = ({ path, values }: LoadedConfig, names: readonly string[]): NamedTunnel[] => {
  const known = Object.keys(values.tunnels);
  if (known.length === 0) throw new Fault('CLIENT_USAGE', { reason: `${path} has no tunnels` });
  const chosen = names.length === 0 ? known : [...new Set(names)];
  return chosen.map((name) => {
    const entry = Object.hasOwn(values.tunnels, name) ? values.tunnels[name] : undefined;
    if (entry !== undefined) return [name, entry];
    throw new Fault('CLIENT_USAGE', { reason: `${path} has no tunnel \`${name}\`; it has ${known.join(', ')}` });
  });
};

/** What is published, and what others publish. */
export const planOf = (entries: readonly NamedTunnel[], wait = false) => ({
  tunnels: entries.filter(([, { p2p_connect }]) => p2p_connect === undefined).map((entry) => specOf(...entry)),
  peers: entries.flatMap(([name, entry]) => peerOf(name, entry, wait)),
});

const peerOf = (name: string, entry: ClientTunnel, wait: boolean): ConnectPeerOptions[] => {
  const { p2p_connect: p2pName, p2p_secret: secret, p2p_service: service, p2p_direct: direct } = entry;
  const { listen_host: listenHost, listen_port: listenPort } = entry;
  if (p2pName === undefined || secret === undefined || listenPort === undefined) return [];
  return [{ name, p2pName, secret, service, direct, listenHost, listenPort, wait }];
};

const specOf = (name: string, entry: ClientTunnel): TunnelSpec => ({
  protocol: entry.proto,
  name,
  ...localOf(entry),
  ...(entry.p2p_publish === undefined ? {} : publishedFieldsOf(entry, entry.p2p_publish)),
  ...(protocolTraits(entry.proto).carriesRequests ? httpFieldsOf(entry) : {}),
  ...(entry.remote_port === undefined ? {} : { remotePort: entry.remote_port }),
  ...(entry.idle_secs === undefined ? {} : { idleSecs: entry.idle_secs }),
  ...(entry.proxy_protocol === undefined ? {} : { proxyProtocol: entry.proxy_protocol }),
  ...(entry.group === undefined ? {} : { group: entry.group }),
  ...(entry.group_key === undefined ? {} : { groupKey: entry.group_key }),
  ...(entry.health_check === undefined ? {} : { healthCheck: healthCheckOf(entry.health_check) }),
});

/** The file was checked: one of them is there. */
const localOf = ({ local_host, local_port, local_socket, files }: ClientTunnel): LocalSpec => ({
  ...(local_port === undefined ? {} : { localHost: local_host, localPort: local_port }),
  ...(local_socket === undefined ? {} : { localSocket: local_socket }),
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
  ...(entry.subdomain === undefined ? {} : { subdomain: entry.subdomain }),
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

export const checkCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('check')
    .description('check config.yml without connecting')
    .option('--config <file>', 'config file (default: ~/.tunnel/config.yml)')
    .addHelpText('after', '\nExample:\n  $ tunnel check --config ./tunnel.yml')
    .action((flags: { config?: string }) => {
      const config = loadConfig(flags.config, io);
      if (config === null) {
        throw new Fault('CONFIG_FILE_UNREADABLE', { file: defaultConfigPath(io), reason: 'no such file' });
      }
      const tunnels = Object.entries(config.values.tunnels);
      const plan = planOf(tunnels);
      for (const spec of plan.tunnels) checkTunnelSpec(spec);
      for (const peer of plan.peers) checkPeerOptions(peer);
      const lines = tunnels.map(([name, entry]) => `  ${name}: ${checkedText(entry)}`);
      io.stdout.write([`${config.path} is good: ${tunnels.length} tunnels`, ...lines, ''].join('\n'));
      finish(EXIT.endedAsAsked);
    });

const checkedText = (entry: ClientTunnel): string => {
  const { proto, group, p2p_publish, p2p_connect, p2p_service } = entry;
  if (p2p_connect !== undefined) {
    return `p2p ${p2p_connect} (${p2p_service}) at ${entry.listen_host}:${entry.listen_port}`;
  }
  const local = localText(localOf(entry));
  if (p2p_publish !== undefined) return `p2p ${local} (${p2p_service}) as ${p2p_publish}`;
  return `${proto} ${local}${group === undefined ? '' : ` in group ${group}`}`;
};
