// The commands that publish one local service, such as `tunnel http 3000`: arguments and flags of each kind of tunnel, and the run.
import { type ClientSpec, localText } from '@tunnel/client';
import { Command, Option } from 'commander';
import { describeTunnel, type Target, type TunnelFlags } from '../config/described-tunnel.ts';
import { loadConfig } from '../config/file.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addNewNameFlag,
  addOpenFlag,
  addRequestFlags,
  type ComfortFlags,
  type ConnectionFlags,
  FLAG_GROUPS,
  type RequestFlags,
} from '../config/flags.ts';
import type { KindName } from '../config/kinds.ts';
import { typedAddress, typedAddressOrSocket, typedUrl } from '../config/local-target.ts';
import { guardOptions } from '../config/policy-flags.ts';
import { resolveSettings } from '../config/settings.ts';
import { commonTunnelFlags, tunnelOptions } from '../config/tunnel-flags.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { runTunnels } from '../run/run-tunnels.ts';

type AddFlags = (command: Command) => Command;

interface TunnelKind {
  readonly description: string;
  readonly argument: readonly [name: string, help: string, read: (text: string) => Target];
  /** Functions that add the run flags supported by this kind. Flags supported by all kinds are not included. */
  readonly runFlags: readonly AddFlags[];
  readonly page: Page;
}

const HTTP_RUN_FLAGS = [addNewNameFlag, addRequestFlags, addOpenFlag, addComfortFlags];
const HTTP_COMMON = ['--basic-auth-file', '--login', '--allow-cidr', '--open', '--server', '--config'];
const CARRIED_COMMON = ['--name', '--allow-cidr', '--json', '--server', '--config'];

/** Argument, flags and help of each kind of tunnel. */
const KINDS: Readonly<Record<KindName, TunnelKind>> = {
  http: {
    description: 'Publish a local website, API or webhook',
    argument: ['<port>', 'Port, host:port, URL or unix:PATH of the service', typedUrl],
    runFlags: HTTP_RUN_FLAGS,
    page: {
      common: [...HTTP_COMMON, '--json'],
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
    },
  },
  files: {
    description: 'Publish a folder as a website',
    argument: ['<dir>', 'Folder to publish', (text) => text],
    runFlags: HTTP_RUN_FLAGS,
    page: {
      common: HTTP_COMMON,
      examples: [
        'tunnel files ./dist --subdomain manual',
        'tunnel files ./dist --domain docs.example.com',
        'tunnel files ~/share --listing',
      ],
      note: 'Dotfiles and symbolic links to files outside the folder are not served.',
    },
  },
  tcp: {
    description: 'Publish a local TCP service (SSH, a database)',
    argument: ['<port>', 'Port, host:port or unix:PATH of the local service', typedAddressOrSocket],
    runFlags: [addNewNameFlag, addComfortFlags],
    page: {
      common: CARRIED_COMMON,
      examples: [
        'tunnel tcp 22',
        'tunnel tcp db.internal:5432 --remote-port 20022',
        'tunnel tcp unix:/run/postgresql/.s.PGSQL.5432',
        'tunnel tcp 5432 --allow-cidr 203.0.113.0/24 --proxy-protocol v2',
        'tunnel tcp 5432 --group db --group-key-env DB_GROUP_KEY --health tcp',
      ],
    },
  },
  tls: {
    description: 'Publish a local TLS service, encrypted end to end',
    argument: ['<port>', 'Port, host:port or unix:PATH of the local service', typedAddressOrSocket],
    runFlags: [addComfortFlags],
    page: {
      common: CARRIED_COMMON,
      examples: [
        'tunnel tls 8443 --subdomain shop',
        'tunnel tls 8443 --domain vault.example.com',
        'tunnel tls db.internal:5432 --subdomain db --allow-cidr 203.0.113.0/24',
        'tunnel tls 8443 --group shop --group-key-file shop-key --health tcp',
      ],
      note: "Visitors connect to the edge's https port and see the certificate of the local\nservice. The edge cannot decrypt the traffic.",
    },
  },
  udp: {
    description: 'Publish a local UDP service (DNS, games, WireGuard)',
    argument: ['<port>', 'Port or host:port of the local service', typedAddress],
    runFlags: [addNewNameFlag],
    page: {
      common: CARRIED_COMMON,
      examples: ['tunnel udp 53 --remote-port 20153', 'tunnel udp 51820 --name wireguard --idle 300'],
    },
  },
};

/** Returns the example command lines for newcomers. */
export const exampleLines = (kind: KindName): readonly string[] => KINDS[kind].page.examples.slice(0, 2);

/** Creates a command with the argument and the flags that describe a tunnel of this kind, without connection flags. */
export const describingCommand = (kind: KindName): Command => {
  const { description, argument } = KINDS[kind];
  const command = new Command(kind).description(description).argument(...argument);
  const headings: readonly string[] = Object.values(FLAG_GROUPS);
  const headingIndex = ({ helpGroupHeading = '' }: Option): number => headings.indexOf(helpGroupHeading);
  const options = [...tunnelOptions(kind), ...ownOptions(kind)].sort((a, b) => headingIndex(a) - headingIndex(b));
  for (const option of options) command.addOption(option);
  return command;
};

/** Creates the flags that describe a tunnel but do not correspond to a single key of config.yml. */
const ownOptions = (kind: KindName): Option[] => [
  new Option('--name <name>', `Name of the tunnel (default: ${kind}-${KINDS[kind].argument[0]})`).helpGroup(
    FLAG_GROUPS.address,
  ),
  ...(kind === 'http' ? [new Option('--https', 'The local service speaks TLS').helpGroup(FLAG_GROUPS.service)] : []),
  ...guardOptions(kind === 'http' || kind === 'files'),
];

type RunFlags = TunnelFlags & ConnectionFlags & RequestFlags & ComfortFlags;
type MakeCommand = (io: Io, finish: (code: ExitCode) => void) => Command;

/** Creates the command that publishes a tunnel of this kind until the user stops the command. */
export const publishCommand =
  (kind: KindName): MakeCommand =>
  (io, finish) => {
    const { runFlags, page } = KINDS[kind];
    const command = addConnectionFlags(runFlags.reduce((made, add) => add(made), describingCommand(kind)));
    const common = [...commonTunnelFlags(kind), ...page.common];
    return addPage(command, { ...page, common }).action(async (target: Target, flags: RunFlags) => {
      const { spec } = describeTunnel(kind, target, flags, io);
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey: stateKeyOf(kind, spec), ...from, tunnels: [spec] }, io));
    });
  };

/**
 * Returns the key of the saved client state, which identifies the client. The same service under another name, or in another group, is
 * another client.
 */
const stateKeyOf = (kind: KindName, spec: ClientSpec): string => {
  const host = kind === 'tcp' || kind === 'udp' ? [] : [spec.domain ?? spec.subdomain ?? ''];
  const group = kind === 'udp' ? [] : [spec.group ?? ''];
  return [spec.proto, localText(spec), spec.name, ...host, ...group].join('|');
};
