// `tunnel udp PORT`: publishes one local UDP service.
import { Command, Option } from 'commander';
import type { ExitCode } from '../exit-codes.ts';
import { addConnectionFlags, type ConnectionFlags, portNumber, wholeNumber } from '../flags.ts';
import type { Io } from '../io.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

interface UdpFlags extends ConnectionFlags {
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

export const udpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addConnectionFlags(
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
      ),
  )
    .addHelpText('after', EXAMPLES)
    .action(async (port: number, flags: UdpFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const name = flags.name ?? `udp-${port}`;
      const spec = {
        protocol: 'udp' as const,
        name,
        localHost: flags.localHost,
        localPort: port,
        ...(flags.remotePort === undefined ? {} : { remotePort: flags.remotePort }),
        ...(flags.idle === undefined ? {} : { idleSecs: flags.idle }),
        ...(flags.proxyProtocol === undefined ? {} : { proxyProtocol: flags.proxyProtocol }),
      };
      const stateKey = `udp|${flags.localHost}:${port}|${name}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    });
