// `tunnel tcp PORT|HOST:PORT|unix:PATH`: publishes one local TCP service.
import { localLabel, localText } from '@tunnel/client';
import { Command } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import { loadConfig } from '../config/file.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addGroupFlags,
  addNewNameFlag,
  type ComfortFlags,
  type ConnectionFlags,
  FLAG_GROUPS,
  type GroupFlags,
  groupSpecOf,
  portNumber,
} from '../config/flags.ts';
import {
  addLocalHostFlag,
  addProxyProtocolFlag,
  addSocketFlag,
  localSpecOf,
  type SocketFlags,
  type TypedTarget,
  typedAddressOrSocket,
} from '../config/local-target.ts';
import { addGuardFlags, type GuardFlags, guardSpecOf } from '../config/policy-flags.ts';
import { resolveSettings } from '../config/settings.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { runTunnels } from '../run/run-tunnels.ts';

export interface TcpTunnelFlags extends GroupFlags, GuardFlags, SocketFlags {
  readonly name?: string;
  readonly localHost?: string;
  readonly remotePort?: number;
  readonly proxyProtocol?: 'v1' | 'v2';
}

const PAGE: Page = {
  common: ['--remote-port', '--name', '--allow-cidr', '--proxy-protocol', '--json', '--server', '--config'],
  examples: [
    'tunnel tcp 22',
    'tunnel tcp db.internal:5432 --remote-port 20022',
    'tunnel tcp unix:/run/postgresql/.s.PGSQL.5432',
    'tunnel tcp 5432 --allow-cidr 203.0.113.0/24 --proxy-protocol v2',
    'tunnel tcp 5432 --group db --group-key-env DB_GROUP_KEY --health tcp',
  ],
};

export const tcpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(addConnectionFlags(addComfortFlags(addNewNameFlag(tcpTunnelCommand()))), PAGE).action(
    async (target: TypedTarget, flags: TcpTunnelFlags & ConnectionFlags & ComfortFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const spec = tcpSpecOf(target, flags, io);
      const stateKey = `tcp|${localText(spec)}|${spec.name}|${flags.group ?? ''}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    },
  );

/** What says which tunnel it is, and nothing about a connection. */
export const tcpTunnelCommand = (): Command =>
  addGroupFlags(
    addGuardFlags(
      addProxyProtocolFlag(
        addSocketFlag(
          addLocalHostFlag(
            new Command('tcp')
              .description('Publish a local TCP service: SSH, a database')
              .argument('<port>', 'Port, host:port or unix:PATH of the local service', typedAddressOrSocket)
              .optionsGroup(FLAG_GROUPS.address)
              .option('--remote-port <port>', 'Public port to use (default: any free one)', portNumber)
              .option('--name <name>', 'Name of the tunnel (default: tcp-<port>)')
              .optionsGroup(FLAG_GROUPS.service),
          ),
        ),
        ['v1', 'v2'],
      ),
    ),
  );

export const tcpSpecOf = (target: TypedTarget, flags: TcpTunnelFlags, io: Io): NamedSpec => {
  const local = localSpecOf(target, flags.localHost, io, flags);
  return {
    protocol: 'tcp',
    name: flags.name ?? `tcp-${localLabel(local)}`,
    ...local,
    ...(flags.remotePort === undefined ? {} : { remotePort: flags.remotePort }),
    ...(flags.proxyProtocol === undefined ? {} : { proxyProtocol: flags.proxyProtocol }),
    ...groupSpecOf(flags, io),
    ...guardSpecOf(flags, io),
  };
};
