// `tunnel udp PORT`: publishes one local UDP service.
import { Command, Option } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import type { ExitCode } from '../exit-codes.ts';
import { addConnectionFlags, type ConnectionFlags, portNumber, wholeNumber } from '../flags.ts';
import type { Io } from '../io.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

export interface UdpTunnelFlags {
  readonly name?: string;
  readonly localHost: string;
  readonly remotePort?: number;
  readonly idle?: number;
  readonly proxyProtocol?: 'v2';
}

const EXAMPLES = `
Example:
  $ tunnel udp 53 --remote-port 20153 --server edge.example.com:4040 --token-file ~/.tunnel/key
  $ tunnel udp 51820 --name wireguard --idle 300`;

/** What says which tunnel it is, and nothing about a connection. */
export const udpTunnelCommand = (): Command =>
  new Command('udp')
    .description('publish a local UDP service')
    .argument('<port>', 'port of the local service', portNumber)
    .option('--name <name>', 'name of the tunnel (default: udp-<port>)')
    .option('--local-host <host>', 'host of the local service', '127.0.0.1')
    .option('--remote-port <port>', 'this public port or none', portNumber)
    .option(
      '--idle <seconds>',
      'forget a visitor after so long without a datagram (default: as the edge has it)',
      wholeNumber(5, 3600),
    )
    .addOption(
      new Option('--proxy-protocol <version>', 'name the visitor to the service before its first datagram').choices([
        'v2',
      ]),
    );

export const udpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addConnectionFlags(udpTunnelCommand())
    .addHelpText('after', EXAMPLES)
    .action(async (port: number, flags: UdpTunnelFlags & ConnectionFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const spec = udpSpecOf(port, flags);
      const stateKey = `udp|${flags.localHost}:${port}|${spec.name}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    });

export const udpSpecOf = (port: number, flags: UdpTunnelFlags): NamedSpec => ({
  protocol: 'udp',
  name: flags.name ?? `udp-${port}`,
  localHost: flags.localHost,
  localPort: port,
  ...(flags.remotePort === undefined ? {} : { remotePort: flags.remotePort }),
  ...(flags.idle === undefined ? {} : { idleSecs: flags.idle }),
  ...(flags.proxyProtocol === undefined ? {} : { proxyProtocol: flags.proxyProtocol }),
});
