// `tunnel http PORT|HOST:PORT|URL|unix:PATH`: publishes one local HTTP service.
import { localLabel, localText, type TunnelSpec } from '@tunnel/client';
import { Command, Option } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import { loadConfig } from '../config/file.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addGroupFlags,
  addHostFlags,
  addNewNameFlag,
  addOpenFlag,
  addRequestFlags,
  type ComfortFlags,
  type ConnectionFlags,
  FLAG_GROUPS,
  type GroupFlags,
  groupSpecOf,
  type HostFlags,
  hostSpecOf,
  type RequestFlags,
} from '../config/flags.ts';
import {
  addLocalHostFlag,
  addSocketFlag,
  localSpecOf,
  type SocketFlags,
  type TypedTarget,
  typedUrl,
} from '../config/local-target.ts';
import { addHttpGuardFlags, guardSpecOf, type HttpGuardFlags } from '../config/policy-flags.ts';
import { resolveSettings } from '../config/settings.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { runTunnels } from '../run/run-tunnels.ts';

/** Of every tunnel that has a public name. */
export interface NamedFlags extends HostFlags, GroupFlags, HttpGuardFlags {
  readonly name?: string;
  readonly hostHeader?: string;
  readonly capture: boolean;
}

export interface HttpTunnelFlags extends NamedFlags, SocketFlags {
  readonly localHost?: string;
  readonly localProtocol: 'http1' | 'h2c';
  readonly https?: boolean;
  readonly localTlsNoVerify?: boolean;
}

/** Of a command that runs until it is told to end. */
export type RunFlags = ConnectionFlags & RequestFlags & ComfortFlags;

const PAGE: Page = {
  common: [
    '--subdomain',
    '--domain',
    '--basic-auth-file',
    '--login',
    '--allow-cidr',
    '--host-header',
    '--open',
    '--json',
    '--server',
    '--config',
  ],
  examples: [
    'tunnel http 3000',
    'tunnel http 3000 --subdomain shop',
    'tunnel http 3000 --domain shop.example.com',
    'tunnel http https://localhost:3443',
    'tunnel http unix:/run/app.sock',
    'tunnel http 3000 --basic-auth-file users.txt --allow-cidr 10.0.0.0/8',
    'tunnel http 3000 --login company --login-domain example.com',
    'tunnel http 3000 --group shop --group-key-file shop-key --health http:/healthz',
  ],
};

export const httpCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(addRunFlags(httpTunnelCommand()), PAGE).action(
    async (target: TypedTarget, flags: HttpTunnelFlags & RunFlags) => {
      finish(await runNamed(httpSpecOf(target, flags, io), flags, io));
    },
  );

/** What says which tunnel it is, and nothing about a connection. */
export const httpTunnelCommand = (): Command =>
  addNamedFlags(
    new Command('http')
      .description('Publish a local website, API or webhook')
      .argument('<port>', 'Port, host:port, URL or unix:PATH of the service', typedUrl),
    'http-<port>',
    {
      addServiceFlags: (command) =>
        addSocketFlag(addLocalHostFlag(command))
          .option('--https', 'The local service speaks TLS')
          .option('--local-tls-no-verify', 'Accept any certificate of the local service')
          .addOption(
            new Option('--local-protocol <protocol>', 'Local protocol; use h2c for gRPC')
              .choices(['http1', 'h2c'])
              .default('http1'),
          )
          .option('--host-header <host>', 'Host header: keep, rewrite, name', 'keep'),
      addGroupFlags,
    },
  );

/** The flags that differ between kinds of services. */
interface ServiceFlags {
  readonly addServiceFlags: (command: Command) => Command;
  readonly addGroupFlags: (command: Command) => Command;
}

/** `name` is the default name of the tunnel. */
export const addNamedFlags = (command: Command, name: string, of: ServiceFlags): Command =>
  of
    .addGroupFlags(
      addHttpGuardFlags(
        of.addServiceFlags(
          addHostFlags(command, ' (default: random)')
            .option('--name <name>', `Name of the tunnel (default: ${name})`)
            .optionsGroup(FLAG_GROUPS.service),
        ),
      ),
    )
    .optionsGroup(FLAG_GROUPS.output)
    .option('--no-capture', 'Do not record requests');

export const addRunFlags = (command: Command): Command =>
  addConnectionFlags(addComfortFlags(addOpenFlag(addRequestFlags(addNewNameFlag(command)))));

export const httpSpecOf = (target: TypedTarget, flags: HttpTunnelFlags, io: Io): NamedSpec => ({
  ...localSpecOf(target, flags.localHost, io, flags),
  protocol: protocolOf(target, flags),
  localProtocol: flags.localProtocol,
  localTlsVerify: flags.localTlsNoVerify !== true,
  ...namedSpecOf(flags, io),
  name: flags.name ?? `http-${localLabel(localSpecOf(target, flags.localHost, io, flags))}`,
});

const protocolOf = ({ scheme }: TypedTarget, { https }: HttpTunnelFlags): 'http' | 'https' => {
  if (scheme === 'http' && https === true) {
    throw misuse('use an https:// URL, or leave out --https.');
  }
  return scheme === 'https' || https === true ? 'https' : 'http';
};

export const namedSpecOf = (flags: NamedFlags, io: Io): Partial<TunnelSpec> => ({
  ...(flags.hostHeader === undefined ? {} : { hostHeader: flags.hostHeader }),
  capture: flags.capture,
  ...hostSpecOf(flags),
  ...groupSpecOf(flags, io),
  ...guardSpecOf(flags, io),
});

/** The same service under another name, or in another group, is another client. */
export const runNamed = (spec: NamedSpec, flags: NamedFlags & RunFlags, io: Io): Promise<ExitCode> => {
  const config = loadConfig(flags.config, io);
  const settings = resolveSettings(flags, config, io);
  const own = `${spec.protocol}|${localText(spec)}|${spec.name}`;
  const stateKey = `${own}|${flags.domain ?? flags.subdomain ?? ''}|${flags.group ?? ''}`;
  const from = { config: config?.path ?? null, source: 'flags' as const };
  return runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io);
};
