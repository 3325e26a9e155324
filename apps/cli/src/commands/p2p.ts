// `tunnel p2p publish`, `tunnel p2p connect`: a local service between two clients, through the edge or direct. `tunnel p2p secret`: what they share.
import { type ConnectPeerOptions, checkPeerOptions, type TunnelSpec } from '@tunnel/client';
import { randomToken } from '@tunnel/runtime';
import { Command, InvalidArgumentError, Option } from 'commander';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { addConnectionFlags, type ConnectionFlags, portNumber } from '../flags.ts';
import type { Io } from '../io.ts';
import { addSecretFlags, findSecret, type SecretFlags } from '../p2p-secret.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

interface PeerFlags extends ConnectionFlags, SecretFlags {
  readonly udp?: boolean;
  readonly direct: boolean;
}

interface PublishFlags extends PeerFlags {
  readonly localHost: string;
  readonly allow: 'account' | 'anyone';
}

interface ConnectFlags extends PeerFlags {
  readonly listen: { readonly host: string; readonly port: number };
}

const EXAMPLES = `
Example:
  $ tunnel p2p secret > secret
  $ tunnel p2p publish office-db 5432 --secret-file secret
  $ tunnel p2p connect office-db --listen 15432 --secret-file secret   # at the other machine
  $ psql -h 127.0.0.1 -p 15432`;

const PUBLISH_EXAMPLES = `
Example:
  $ tunnel p2p publish office-db 5432 --secret-file secret
  $ TUNNEL_P2P_SECRET=... tunnel p2p publish dns 53 --udp --allow anyone`;

const CONNECT_EXAMPLES = `
Example:
  $ tunnel p2p connect office-db --listen 15432 --secret-file secret
  $ tunnel p2p connect dns --udp --listen 0.0.0.0:5353 --secret-env DNS_SECRET --wait`;

type Finish = (code: ExitCode) => void;

export const p2pCommand = (io: Io, finish: Finish): Command =>
  new Command('p2p')
    .description('take a local service to another client, direct where both networks allow it')
    .addHelpText('after', EXAMPLES)
    .addCommand(publishCommand(io, finish))
    .addCommand(connectCommand(io, finish))
    .addCommand(secretCommand(io, finish));

const publishCommand = (io: Io, finish: Finish): Command =>
  addPeerFlags(
    new Command('publish')
      .description('publish a local service to clients that have the secret')
      .argument('<name>', 'the name that they ask for')
      .argument('<port>', 'port of the local service', portNumber)
      .option('--local-host <host>', 'host of the local service', '127.0.0.1')
      .addOption(
        new Option('--allow <who>', 'who may connect with the secret: keys of your account, or any key of this edge')
          .choices(['account', 'anyone'])
          .default('account'),
      ),
  )
    .addHelpText('after', PUBLISH_EXAMPLES)
    .action(async (name: string, port: number, flags: PublishFlags) => {
      const secret = findSecret(flags, io);
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const { localHost, allow, direct } = flags;
      const service = flags.udp === true ? 'udp' : 'tcp';
      const spec: TunnelSpec = {
        ...{ protocol: 'p2p', name, p2pName: name, secret, service, allow, direct, localHost, localPort: port },
      };
      const stateKey = `p2p|${localHost}:${port}|${name}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    });

const connectCommand = (io: Io, finish: Finish): Command =>
  addPeerFlags(
    new Command('connect')
      .description('reach what another client publishes, at a port of this machine')
      .argument('<name>', 'the name that it is published under')
      .requiredOption(
        '--listen <[host:]port>',
        'where local programs find it; on 127.0.0.1 unless told, port 0: any',
        listenAddress,
      ),
  )
    .addHelpText('after', CONNECT_EXAMPLES)
    .action(async (name: string, flags: ConnectFlags) => {
      const secret = findSecret(flags, io);
      const { host: listenHost, port: listenPort } = flags.listen;
      const service = flags.udp === true ? 'udp' : 'tcp';
      const wait = flags.wait ?? false;
      const peer: ConnectPeerOptions = {
        ...{ name, p2pName: name, secret, service, direct: flags.direct, listenHost, listenPort, wait },
      };
      checkPeerOptions(peer);
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const stateKey = `p2p-connect|${listenHost}:${listenPort}|${name}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [], peers: [peer] }, io));
    });

const secretCommand = (io: Io, finish: Finish): Command =>
  new Command('secret')
    .description('print a fresh secret for both ends: 256 bits')
    .addHelpText('after', '\nExample:\n  $ tunnel p2p secret > secret')
    .action(() => {
      io.stdout.write(`${randomToken(32)}\n`);
      finish(EXIT.endedAsAsked);
    });

const addPeerFlags = (command: Command): Command =>
  addConnectionFlags(
    addSecretFlags(
      command
        .option('--udp', 'the service speaks UDP; both ends say the same')
        .option('--no-direct', 'through the relay of the edge alone'),
    ),
  );

const LISTEN = /^(?:(?<host>\[[0-9a-fA-F:.%]+\]|[^\s:/@[\]]+):)?(?<port>\d{1,5})$/;

const listenAddress = (text: string): { host: string; port: number } => {
  const { host = '127.0.0.1', port = '' } = LISTEN.exec(text)?.groups ?? {};
  if (port !== '' && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  throw new InvalidArgumentError('It must be a port from 0 to 65535, with or without a host before it (host:port).');
};
