// `tunnel tcp PORT|unix:PATH`: publishes one local TCP service.
import { localLabel, localText } from '@tunnel/client';
import { Command } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import type { ExitCode } from '../exit-codes.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addGroupFlags,
  type ComfortFlags,
  type ConnectionFlags,
  type GroupFlags,
  groupSpecOf,
  portNumber,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { LOCAL_TARGET_HELP, localSpecOf, type TypedTarget, typedTarget } from '../local-target.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

export interface TcpTunnelFlags extends GroupFlags {
  readonly name?: string;
  readonly localHost?: string;
  readonly remotePort?: number;
}

const EXAMPLES = `
Example:
  $ tunnel tcp 5432 --server edge.example.com:4040 --token-file ~/.tunnel/key
  $ tunnel tcp unix:/var/run/docker.sock
  $ tunnel tcp 5432 --group db --group-key-env DB_GROUP_KEY --health tcp --health-interval 5`;

export const tcpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addConnectionFlags(addComfortFlags(tcpTunnelCommand()))
    .addHelpText('after', EXAMPLES)
    .action(async (target: TypedTarget, flags: TcpTunnelFlags & ConnectionFlags & ComfortFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const spec = tcpSpecOf(target, flags, io);
      const stateKey = `tcp|${localText(spec)}|${spec.name}|${flags.group ?? ''}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    });

/** What says which tunnel it is, and nothing about a connection. */
export const tcpTunnelCommand = (): Command =>
  addGroupFlags(
    new Command('tcp')
      .description('publish a local TCP service')
      .argument('<port>', LOCAL_TARGET_HELP, typedTarget)
      .option('--name <name>', 'name of the tunnel (default: tcp-<port>)')
      .option('--local-host <host>', 'host of the local service (default: "127.0.0.1")')
      .option('--remote-port <port>', 'this public port or none', portNumber),
  );

export const tcpSpecOf = (target: TypedTarget, flags: TcpTunnelFlags, io: Io): NamedSpec => {
  const local = localSpecOf(target, flags.localHost, io);
  return {
    protocol: 'tcp',
    name: flags.name ?? `tcp-${localLabel(local)}`,
    ...local,
    ...(flags.remotePort === undefined ? {} : { remotePort: flags.remotePort }),
    ...groupSpecOf(flags, io),
  };
};
