// `tunnel http PORT`: publishes one local HTTP service.
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
  portNumber,
  type RequestFlags,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { runTunnels } from '../run-tunnels.ts';
import { loadConfig, resolveSettings } from '../settings.ts';

export interface HttpTunnelFlags extends GroupFlags {
  readonly name?: string;
  readonly subdomain?: string;
  readonly hostHeader: string;
  readonly localHost: string;
  readonly localProtocol: 'http1' | 'h2c';
  readonly https?: boolean;
  readonly localTlsNoVerify?: boolean;
  readonly capture: boolean;
}

const EXAMPLES = `
Example:
  $ tunnel http 3000 --subdomain shop --token-file ~/.tunnel/key
  $ tunnel http 3000 --group shop --group-key-file ~/.tunnel/shop-key --health http:/healthz`;

/** The argument and the flags that say what the tunnel is. */
export const httpTunnelCommand = (): Command =>
  addGroupFlags(
    new Command('http')
      .description('publish a local HTTP service')
      .argument('<port>', 'port of the local service', portNumber)
      .option('--subdomain <name>', 'this name or none (default: one that nobody guesses)')
      .option('--host-header <keep|rewrite|name>', "the visitor's Host, the local address, or this name", 'keep')
      .option('--name <name>', 'name of the tunnel (default: http-<port>)')
      .option('--local-host <host>', 'host of the local service', '127.0.0.1')
      .addOption(
        new Option('--local-protocol <protocol>', 'what the service speaks; gRPC needs h2c')
          .choices(['http1', 'h2c'])
          .default('http1'),
      )
      .option('--https', 'the local service speaks TLS')
      .option('--local-tls-no-verify', 'accept any certificate of the local service')
      .option('--no-capture', 'keep no request for a look or a replay, at the edge or here'),
  );

export const httpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addConnectionFlags(addComfortFlags(addRequestFlags(httpTunnelCommand())))
    .addHelpText('after', EXAMPLES)
    .action(async (port: number, flags: HttpTunnelFlags & ConnectionFlags & RequestFlags & ComfortFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const spec = httpSpecOf(port, flags, io);
      const stateKey = `${spec.protocol}|${flags.localHost}:${port}|${spec.name}|${flags.subdomain ?? ''}|${flags.group ?? ''}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    });

export const httpSpecOf = (port: number, flags: HttpTunnelFlags, io: Io): NamedSpec => ({
  protocol: flags.https === true ? 'https' : 'http',
  name: flags.name ?? `http-${port}`,
  localHost: flags.localHost,
  localPort: port,
  hostHeader: flags.hostHeader,
  localProtocol: flags.localProtocol,
  localTlsVerify: flags.localTlsNoVerify !== true,
  capture: flags.capture,
  ...(flags.subdomain === undefined ? {} : { subdomain: flags.subdomain }),
  ...groupSpecOf(flags, io),
});
