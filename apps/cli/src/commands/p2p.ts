// `tunnel p2p publish`, `tunnel p2p connect`: a local service between two clients, through the edge or direct. `tunnel p2p secret`: what they share.
import { type ConnectPeerOptions, checkPeerOptions, localText, type TunnelSpec } from '@tunnel/client';
import { pathFrom, readSecretText } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { randomToken, Secret } from '@tunnel/runtime';
import { Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../config/file.ts';
import { addConnectionFlags, type ConnectionFlags, FLAG_GROUPS } from '../config/flags.ts';
import { addLocalHostFlag, localSpecOf, type TypedTarget, typedAddress } from '../config/local-target.ts';
import { resolveSettings } from '../config/settings.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { runTunnels } from '../run/run-tunnels.ts';

interface SecretFlags {
  readonly secretFile?: string;
  readonly secretEnv?: string;
}

interface PeerFlags extends ConnectionFlags, SecretFlags {
  readonly udp?: boolean;
  readonly direct: boolean;
}

interface PublishFlags extends PeerFlags {
  readonly localHost?: string;
  readonly allow: 'account' | 'anyone';
}

interface ConnectFlags extends PeerFlags {
  readonly listen: { readonly host: string; readonly port: number };
}

const EXAMPLES = `
Examples:
  $ tunnel p2p secret > secret
  $ tunnel p2p publish office-db 5432 --secret-file secret
  $ tunnel p2p connect office-db --listen 15432 --secret-file secret   # on the other machine
  $ psql -h 127.0.0.1 -p 15432`;

const PUBLISH_PAGE: Page = {
  common: ['--allow', '--secret-file', '--secret-env', '--udp', '--no-direct', '--json', '--server', '--config'],
  examples: [
    'tunnel p2p publish office-db 5432 --secret-file secret',
    'TUNNEL_P2P_SECRET=... tunnel p2p publish dns 53 --udp --allow anyone',
  ],
};

const CONNECT_PAGE: Page = {
  common: ['--listen', '--secret-file', '--secret-env', '--udp', '--no-direct', '--json', '--server', '--config'],
  examples: [
    'tunnel p2p connect office-db --listen 15432 --secret-file secret',
    'tunnel p2p connect dns --udp --listen 5353 --secret-env DNS_SECRET --wait',
  ],
};

type Finish = (code: ExitCode) => void;

export const p2pCommand = (io: Io, finish: Finish): Command =>
  new Command('p2p')
    .description('Connect two computers, directly where possible')
    .addHelpText('after', EXAMPLES)
    .addCommand(publishCommand(io, finish))
    .addCommand(connectCommand(io, finish))
    .addCommand(secretCommand(io, finish));

const publishCommand = (io: Io, finish: Finish): Command =>
  addPage(
    addPeerFlags(
      addLocalHostFlag(
        new Command('publish')
          .description('Offer a local service to clients that have the secret')
          .argument('<name>', 'Name that they ask for')
          .argument('<port>', 'Port or host:port of the local service', typedAddress)
          .optionsGroup(FLAG_GROUPS.service),
      ).addOption(new Option('--allow <who>', 'Who may connect').choices(['account', 'anyone']).default('account')),
    ),
    PUBLISH_PAGE,
  ).action(async (name: string, target: TypedTarget, flags: PublishFlags) => {
    const secret = findSecret(flags, io);
    const config = loadConfig(flags.config, io);
    const settings = resolveSettings(flags, config, io);
    const { allow, direct } = flags;
    const local = localSpecOf(target, flags.localHost, io);
    const service = flags.udp === true ? 'udp' : 'tcp';
    const spec: TunnelSpec = {
      ...{ protocol: 'p2p', name, p2pName: name, secret, service, allow, direct, ...local },
    };
    const stateKey = `p2p|${localText(local)}|${name}`;
    const from = { config: config?.path ?? null, source: 'flags' as const };
    finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
  });

const connectCommand = (io: Io, finish: Finish): Command =>
  addPage(
    addPeerFlags(
      new Command('connect')
        .description('Reach what another client offers, at a port of this computer')
        .argument('<name>', 'Name that it is published under')
        .optionsGroup(FLAG_GROUPS.service)
        .requiredOption('--listen <[host:]port>', 'Where local programs find it (port 0: any free one)', listenAddress),
    ),
    CONNECT_PAGE,
  ).action(async (name: string, flags: ConnectFlags) => {
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
    .description('Print a new secret for both ends')
    .addHelpText('after', '\nExamples:\n  $ tunnel p2p secret > secret')
    .action(() => {
      io.stdout.write(`${randomToken(32)}\n`);
      finish(EXIT.endedAsAsked);
    });

const addPeerFlags = (command: Command): Command =>
  addConnectionFlags(
    addSecretFlags(
      command
        .option('--udp', 'The service speaks UDP (give it on both ends)')
        .option('--no-direct', 'Only use the relay of the edge'),
    ),
  );

const LISTEN = /^(?:(?<host>\[[0-9a-fA-F:.%]+\]|[^\s:/@[\]]+):)?(?<port>\d{1,5})$/;

const listenAddress = (text: string): { host: string; port: number } => {
  const { host = '127.0.0.1', port = '' } = LISTEN.exec(text)?.groups ?? {};
  if (port !== '' && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  throw new InvalidArgumentError('Use 0-65535 or host:port.');
};

// Where commands find the secret: a file, a variable, or TUNNEL_P2P_SECRET. No flag takes it itself: a process list shows flags.

const VARIABLE = 'TUNNEL_P2P_SECRET';

const addSecretFlags = (command: Command): Command =>
  command
    .option('--secret-file <file>', 'File with the secret that both ends share')
    .option('--secret-env <variable>', `Variable with it (default: ${VARIABLE})`);

/** Reads the secret of a p2p name from a file or an environment variable. A line break at the end is kept; callers cut it off. Throws a Fault. */
const findSecret = ({ secretFile, secretEnv }: SecretFlags, io: Pick<Io, 'env' | 'cwd' | 'home'>): Secret => {
  if (secretFile !== undefined && secretEnv !== undefined) {
    throw misuse('use --secret-file or --secret-env, not both.');
  }
  if (secretFile !== undefined) {
    const answer = readSecretText(pathFrom(io.cwd, secretFile, io.home));
    if ('secret' in answer) return answer.secret;
    throw new Fault('CLIENT_P2P_SECRET_FILE', { file: secretFile, reason: answer.reason });
  }
  const text = io.env[secretEnv ?? VARIABLE] ?? '';
  if (text !== '') return new Secret(text);
  if (secretEnv === undefined) throw new Fault('CLIENT_P2P_SECRET_MISSING');
  throw misuse(`the variable ${secretEnv} is not set (--secret-env).`);
};
