// `tunnel p2p publish`, `tunnel p2p connect`: share a local service between two clients, through the edge or directly. `tunnel p2p
// secret`: generates the secret of both clients.
import { checkPeerOptions, localText } from '@tunnel/client';
import { pathFrom, readSecretText } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { randomToken, Secret } from '@tunnel/runtime';
import type { TunnelCommand } from '@tunnel/tunnel-spec';
import { Command } from 'commander';
import { filledEntry } from '../config/described-tunnel.ts';
import { loadConfig } from '../config/file.ts';
import { addConnectionFlags, type ConnectionFlags } from '../config/flags.ts';
import { type TypedTarget, targetEntry, typedAddress } from '../config/local-target.ts';
import { planTunnels } from '../config/plan.ts';
import { resolveSettings } from '../config/settings.ts';
import { commonTunnelFlags, entryOfFlags, type FlagEntry, tunnelOptions } from '../config/tunnel-flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import type { TunnelRun } from '../run/hooks/running-client.ts';
import { runTunnels } from '../run/run-tunnels.ts';

interface PeerFlags extends ConnectionFlags {
  readonly secretFile?: string;
  readonly secretEnv?: string;
  readonly localHost?: string;
}

const EXAMPLES = `
Examples:
  $ tunnel p2p secret > secret
  $ tunnel p2p publish office-db 5432 --secret-file secret
  # On the other computer, with a copy of the secret:
  $ tunnel p2p connect office-db --listen 15432 --secret-file secret
  $ psql -h 127.0.0.1 -p 15432`;

const COMMON = ['--json', '--server', '--config'];

const PUBLISH_PAGE: Page = {
  common: [...commonTunnelFlags('p2p publish'), ...COMMON],
  examples: [
    'tunnel p2p publish office-db 5432 --secret-file secret',
    'TUNNEL_P2P_SECRET=... tunnel p2p publish dns 53 --udp --allow anyone',
  ],
};

const CONNECT_PAGE: Page = {
  common: [...commonTunnelFlags('p2p connect'), ...COMMON],
  examples: [
    'tunnel p2p connect office-db --listen 15432 --secret-file secret',
    'tunnel p2p connect dns --udp --listen 5353 --secret-env DNS_SECRET --wait',
  ],
};

type Finish = (code: ExitCode) => void;

export const p2pCommand = (io: Io, finish: Finish): Command =>
  new Command('p2p')
    .description('Connect two computers, directly if possible')
    .addHelpText('after', EXAMPLES)
    .addCommand(publishCommand(io, finish))
    .addCommand(connectCommand(io, finish))
    .addCommand(secretCommand(io, finish));

const publishCommand = (io: Io, finish: Finish): Command => {
  const command = new Command('publish')
    .description('Publish a local service to clients with the same secret')
    .argument('<name>', 'Name to publish under')
    .argument('<port>', 'Port or host:port of the local service', typedAddress);
  return addPage(addPeerFlags(command, 'p2p publish'), PUBLISH_PAGE).action(
    async (name: string, target: TypedTarget, flags: PeerFlags) => {
      const entry = { ...targetEntry(target, flags.localHost, io), ...peerEntry('p2p publish', flags, io) };
      const { tunnels } = planTunnels([[name, filledEntry('p2p', { p2p_publish: name, ...entry })]], io);
      const local = tunnels.map(localText).join();
      finish(await runPeer({ stateKey: `p2p|${local}|${name}`, tunnels }, flags, io));
    },
  );
};

const connectCommand = (io: Io, finish: Finish): Command => {
  const command = new Command('connect')
    .description("Make another client's service available on a local port")
    .argument('<name>', 'Name the service is published under');
  return addPage(addPeerFlags(command, 'p2p connect'), CONNECT_PAGE).action(async (name: string, flags: PeerFlags) => {
    const entry = filledEntry('p2p', { p2p_connect: name, ...peerEntry('p2p connect', flags, io) });
    const { peers } = planTunnels([[name, entry]], io, flags.wait);
    for (const peer of peers) checkPeerOptions(peer);
    const stateKey = `p2p-connect|${entry.listen_host}:${entry.listen_port}|${name}`;
    finish(await runPeer({ stateKey, tunnels: [], peers }, flags, io));
  });
};

const addPeerFlags = (command: Command, kind: TunnelCommand): Command => {
  for (const option of tunnelOptions(kind)) command.addOption(option);
  return addConnectionFlags(command);
};

const peerEntry = (kind: TunnelCommand, flags: PeerFlags, io: Io): FlagEntry => ({
  ...entryOfFlags(kind, { ...flags }, io),
  p2p_secret: findSecret(flags, io),
});

const runPeer = (
  run: Pick<TunnelRun, 'stateKey' | 'tunnels' | 'peers'>,
  flags: PeerFlags,
  io: Io,
): Promise<ExitCode> => {
  const config = loadConfig(flags.config, io);
  const settings = resolveSettings(flags, config, io);
  return runTunnels({ settings, flags, config: config?.path ?? null, source: 'flags', ...run }, io);
};

const secretCommand = (io: Io, finish: Finish): Command =>
  new Command('secret')
    .description('Generate a secret for both ends')
    .addHelpText('after', '\nExamples:\n  $ tunnel p2p secret > secret')
    .action(() => {
      io.stdout.write(`${randomToken(32)}\n`);
      finish(EXIT.endedAsAsked);
    });

const VARIABLE = 'TUNNEL_P2P_SECRET';

/**
 * Reads the secret of a p2p name from a file or an environment variable. A line break at the end is kept; callers cut off the line break.
 * Throws a Fault.
 */
const findSecret = ({ secretFile, secretEnv }: PeerFlags, io: Pick<Io, 'env' | 'cwd' | 'home'>): Secret => {
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
