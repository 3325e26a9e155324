// `tunnel http PORT|unix:PATH`: publishes one local HTTP service.
import { localLabel, localText, type TunnelSpec } from '@tunnel/client';
import { Command, Option } from 'commander';
import type { ExitCode } from '../exit-codes.ts';
import {
  addConnectionFlags,
  addGroupFlags,
  addRequestFlags,
  type ConnectionFlags,
  type GroupFlags,
  groupSpecOf,
  type RequestFlags,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { LOCAL_PLACE_HELP, type LocalPlace, localPlace, localSpecOf } from '../local-place.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

/** Of every tunnel that has a public name. */
export interface NamedFlags extends ConnectionFlags, RequestFlags, GroupFlags {
  readonly name?: string;
  readonly subdomain?: string;
  readonly hostHeader: string;
  readonly capture: boolean;
}

interface HttpFlags extends NamedFlags {
  readonly localHost?: string;
  readonly localProtocol: 'http1' | 'h2c';
  readonly https?: boolean;
  readonly localTlsNoVerify?: boolean;
}

const EXAMPLES = `
Example:
  $ tunnel http 3000 --subdomain shop --token-file ~/.tunnel/key
  $ tunnel http unix:/run/app.sock
  $ tunnel http 3000 --group shop --group-key-file ~/.tunnel/shop-key --health http:/healthz`;

export const httpCommand = (io: Io, finish: (code: ExitCode) => void): Command => {
  const command = new Command('http')
    .description('publish a local HTTP service')
    .argument('<port>', LOCAL_PLACE_HELP, localPlace)
    .option('--name <name>', 'name of the tunnel (default: http-<port>)')
    .option('--local-host <host>', 'host of the local service (default: "127.0.0.1")')
    .addOption(
      new Option('--local-protocol <protocol>', 'what the service speaks; gRPC needs h2c')
        .choices(['http1', 'h2c'])
        .default('http1'),
    )
    .option('--https', 'the local service speaks TLS')
    .option('--local-tls-no-verify', 'accept any certificate of the local service');
  return addNamedFlags(command)
    .addHelpText('after', EXAMPLES)
    .action(async (place: LocalPlace, flags: HttpFlags) => {
      finish(await runNamed(httpSpecOf(place, flags, io), flags, io));
    });
};

export const addNamedFlags = (command: Command): Command =>
  addConnectionFlags(
    addRequestFlags(
      addGroupFlags(
        command
          .option('--subdomain <name>', 'this name or none (default: one that nobody guesses)')
          .option('--host-header <keep|rewrite|name>', "the visitor's Host, the local address, or this name", 'keep')
          .option('--no-capture', 'keep no request for a look or a replay, at the edge or here'),
      ),
    ),
  );

const httpSpecOf = (place: LocalPlace, flags: HttpFlags, io: Io): TunnelSpec => ({
  ...localSpecOf(place, flags.localHost, io),
  protocol: flags.https === true ? 'https' : 'http',
  localProtocol: flags.localProtocol,
  localTlsVerify: flags.localTlsNoVerify !== true,
  ...namedSpecOf(flags, io),
  name: flags.name ?? `http-${localLabel(localSpecOf(place, flags.localHost, io))}`,
});

export const namedSpecOf = (flags: NamedFlags, io: Io): Partial<TunnelSpec> => ({
  hostHeader: flags.hostHeader,
  capture: flags.capture,
  ...(flags.subdomain === undefined ? {} : { subdomain: flags.subdomain }),
  ...groupSpecOf(flags, io),
});

/** The same service under another name, or in another group, is another client. */
export const runNamed = (spec: TunnelSpec, flags: NamedFlags, io: Io): Promise<ExitCode> => {
  const settings = resolveSettings(flags, loadConfig(flags.config, io), io);
  const own = `${spec.protocol}|${localText(spec)}|${spec.name}`;
  const stateKey = `${own}|${flags.subdomain ?? ''}|${flags.group ?? ''}`;
  return runTunnels({ settings, flags, stateKey, tunnels: [spec] }, io);
};
