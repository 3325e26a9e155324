// `tunnel http PORT|unix:PATH`: publishes one local HTTP service.
import { localLabel, localText, type TunnelSpec } from '@tunnel/client';
import { Command, Option } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import type { ExitCode } from '../exit-codes.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addGroupFlags,
  addRequestFlags,
  type ComfortFlags,
  type ConnectionFlags,
  type GroupFlags,
  groupSpecOf,
  type RequestFlags,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { LOCAL_TARGET_HELP, localSpecOf, type TypedTarget, typedTarget } from '../local-target.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

/** Of every tunnel that has a public name. */
export interface NamedFlags extends GroupFlags {
  readonly name?: string;
  readonly subdomain?: string;
  readonly hostHeader: string;
  readonly capture: boolean;
}

export interface HttpTunnelFlags extends NamedFlags {
  readonly localHost?: string;
  readonly localProtocol: 'http1' | 'h2c';
  readonly https?: boolean;
  readonly localTlsNoVerify?: boolean;
}

/** Of a command that runs until it is told to end. */
export type RunFlags = ConnectionFlags & RequestFlags & ComfortFlags;

const EXAMPLES = `
Example:
  $ tunnel http 3000 --subdomain shop --token-file ~/.tunnel/key
  $ tunnel http unix:/run/app.sock
  $ tunnel http 3000 --group shop --group-key-file ~/.tunnel/shop-key --health http:/healthz`;

export const httpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addRunFlags(httpTunnelCommand())
    .addHelpText('after', EXAMPLES)
    .action(async (target: TypedTarget, flags: HttpTunnelFlags & RunFlags) => {
      finish(await runNamed(httpSpecOf(target, flags, io), flags, io));
    });

/** What says which tunnel it is, and nothing about a connection. */
export const httpTunnelCommand = (): Command =>
  addNamedFlags(
    new Command('http')
      .description('publish a local HTTP service')
      .argument('<port>', LOCAL_TARGET_HELP, typedTarget)
      .option('--name <name>', 'name of the tunnel (default: http-<port>)')
      .option('--local-host <host>', 'host of the local service (default: "127.0.0.1")')
      .addOption(
        new Option('--local-protocol <protocol>', 'what the service speaks; gRPC needs h2c')
          .choices(['http1', 'h2c'])
          .default('http1'),
      )
      .option('--https', 'the local service speaks TLS')
      .option('--local-tls-no-verify', 'accept any certificate of the local service'),
  );

export const addNamedFlags = (command: Command): Command =>
  addGroupFlags(
    command
      .option('--subdomain <name>', 'this name or none (default: one that nobody guesses)')
      .option('--host-header <keep|rewrite|name>', "the visitor's Host, the local address, or this name", 'keep')
      .option('--no-capture', 'keep no request for a look or a replay, at the edge or here'),
  );

export const addRunFlags = (command: Command): Command => addConnectionFlags(addComfortFlags(addRequestFlags(command)));

export const httpSpecOf = (target: TypedTarget, flags: HttpTunnelFlags, io: Io): NamedSpec => ({
  ...localSpecOf(target, flags.localHost, io),
  protocol: flags.https === true ? 'https' : 'http',
  localProtocol: flags.localProtocol,
  localTlsVerify: flags.localTlsNoVerify !== true,
  ...namedSpecOf(flags, io),
  name: flags.name ?? `http-${localLabel(localSpecOf(target, flags.localHost, io))}`,
});

export const namedSpecOf = (flags: NamedFlags, io: Io): Partial<TunnelSpec> => ({
  hostHeader: flags.hostHeader,
  capture: flags.capture,
  ...(flags.subdomain === undefined ? {} : { subdomain: flags.subdomain }),
  ...groupSpecOf(flags, io),
});

/** The same service under another name, or in another group, is another client. */
export const runNamed = (spec: NamedSpec, flags: NamedFlags & RunFlags, io: Io): Promise<ExitCode> => {
  const config = loadConfig(flags.config, io);
  const settings = resolveSettings(flags, config, io);
  const own = `${spec.protocol}|${localText(spec)}|${spec.name}`;
  const stateKey = `${own}|${flags.subdomain ?? ''}|${flags.group ?? ''}`;
  const from = { config: config?.path ?? null, source: 'flags' as const };
  return runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io);
};
