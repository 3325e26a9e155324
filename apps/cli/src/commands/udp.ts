// `tunnel udp PORT|HOST:PORT`: publishes one local UDP service.
import { localText } from '@tunnel/client';
import { Command } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import { loadConfig } from '../config/file.ts';
import {
  addConnectionFlags,
  addNewNameFlag,
  type ConnectionFlags,
  FLAG_GROUPS,
  portNumber,
  wholeNumber,
} from '../config/flags.ts';
import {
  addLocalHostFlag,
  addProxyProtocolFlag,
  localSpecOf,
  type TypedTarget,
  typedAddress,
} from '../config/local-target.ts';
import { addGuardFlags, type GuardFlags, guardSpecOf } from '../config/policy-flags.ts';
import { resolveSettings } from '../config/settings.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { runTunnels } from '../run/run-tunnels.ts';

export interface UdpTunnelFlags extends GuardFlags {
  readonly name?: string;
  readonly localHost?: string;
  readonly remotePort?: number;
  readonly idle?: number;
  readonly proxyProtocol?: 'v2';
}

const PAGE: Page = {
  common: ['--remote-port', '--name', '--idle', '--allow-cidr', '--proxy-protocol', '--json', '--server', '--config'],
  examples: ['tunnel udp 53 --remote-port 20153', 'tunnel udp 51820 --name wireguard --idle 300'],
};

/** What says which tunnel it is, and nothing about a connection. */
export const udpTunnelCommand = (): Command =>
  addGuardFlags(
    addProxyProtocolFlag(
      addLocalHostFlag(
        new Command('udp')
          .description('Publish a local UDP service: DNS, a game, WireGuard')
          .argument('<port>', 'Port or host:port of the local service', typedAddress)
          .optionsGroup(FLAG_GROUPS.address)
          .option('--remote-port <port>', 'Public port to use (default: any free one)', portNumber)
          .option('--name <name>', 'Name of the tunnel (default: udp-<port>)')
          .optionsGroup(FLAG_GROUPS.service),
      ).option('--idle <seconds>', "Silence that ends a visit (default: the edge's)", wholeNumber(5, 3600)),
      ['v2'],
    ),
  );

export const udpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(addConnectionFlags(addNewNameFlag(udpTunnelCommand())), PAGE).action(
    async (target: TypedTarget, flags: UdpTunnelFlags & ConnectionFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const spec = udpSpecOf(target, flags, io);
      const stateKey = `udp|${localText(spec)}|${spec.name}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    },
  );

export const udpSpecOf = (target: TypedTarget, flags: UdpTunnelFlags, io: Io): NamedSpec => ({
  protocol: 'udp',
  name: flags.name ?? `udp-${target.port}`,
  ...localSpecOf(target, flags.localHost, io),
  ...(flags.remotePort === undefined ? {} : { remotePort: flags.remotePort }),
  ...(flags.idle === undefined ? {} : { idleSecs: flags.idle }),
  ...(flags.proxyProtocol === undefined ? {} : { proxyProtocol: flags.proxyProtocol }),
  ...guardSpecOf(flags, io),
});
