// `tunnel tls PORT|HOST:PORT|unix:PATH`: publishes one local service whose TLS nobody between it and its visitors can read.
import { localLabel, localText } from '@tunnel/client';
import { Command } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import { loadConfig } from '../config/file.ts';
import {
  addComfortFlags,
  addConnectionFlags,
  addGroupFlags,
  addHostFlags,
  type ComfortFlags,
  type ConnectionFlags,
  FLAG_GROUPS,
  type GroupFlags,
  groupSpecOf,
  type HostFlags,
  hostSpecOf,
} from '../config/flags.ts';
import {
  addLocalHostFlag,
  addProxyProtocolFlag,
  addSocketFlag,
  localSpecOf,
  type SocketFlags,
  type TypedTarget,
  typedAddressOrSocket,
} from '../config/local-target.ts';
import { addGuardFlags, type GuardFlags, guardSpecOf } from '../config/policy-flags.ts';
import { resolveSettings } from '../config/settings.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { runTunnels } from '../run/run-tunnels.ts';

export interface TlsTunnelFlags extends HostFlags, GroupFlags, GuardFlags, SocketFlags {
  readonly name?: string;
  readonly localHost?: string;
  readonly proxyProtocol?: 'v1' | 'v2';
}

const PAGE: Page = {
  common: ['--subdomain', '--domain', '--name', '--allow-cidr', '--proxy-protocol', '--json', '--server', '--config'],
  examples: [
    'tunnel tls 8443 --subdomain shop',
    'tunnel tls 8443 --domain vault.example.com',
    'tunnel tls db.internal:5432 --subdomain db --allow-cidr 203.0.113.0/24',
    'tunnel tls 8443 --group shop --group-key-file shop-key --health tcp',
  ],
  note: `Visitors come to the edge's https port and see the certificate of the local service.`,
};

export const tlsCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(addConnectionFlags(addComfortFlags(tlsTunnelCommand())), PAGE).action(
    async (target: TypedTarget, flags: TlsTunnelFlags & ConnectionFlags & ComfortFlags) => {
      const config = loadConfig(flags.config, io);
      const settings = resolveSettings(flags, config, io);
      const spec = tlsSpecOf(target, flags, io);
      const host = flags.domain ?? flags.subdomain ?? '';
      const stateKey = `tls|${localText(spec)}|${spec.name}|${host}|${flags.group ?? ''}`;
      const from = { config: config?.path ?? null, source: 'flags' as const };
      finish(await runTunnels({ settings, flags, stateKey, ...from, tunnels: [spec] }, io));
    },
  );

/** What says which tunnel it is, and nothing about a connection. */
export const tlsTunnelCommand = (): Command =>
  addGroupFlags(
    addGuardFlags(
      addProxyProtocolFlag(
        addSocketFlag(
          addLocalHostFlag(
            addHostFlags(
              new Command('tls')
                .description('Publish a local service that speaks TLS itself: the edge cannot read it')
                .argument('<port>', 'Port, host:port or unix:PATH of the local service', typedAddressOrSocket),
              '',
            )
              .option('--name <name>', 'Name of the tunnel (default: tls-<port>)')
              .optionsGroup(FLAG_GROUPS.service),
          ),
        ),
        ['v1', 'v2'],
      ),
    ),
  );

export const tlsSpecOf = (target: TypedTarget, flags: TlsTunnelFlags, io: Io): NamedSpec => {
  checkHost(flags);
  const local = localSpecOf(target, flags.localHost, io, flags);
  return {
    protocol: 'tls',
    name: flags.name ?? `tls-${localLabel(local)}`,
    ...local,
    ...hostSpecOf(flags),
    ...(flags.proxyProtocol === undefined ? {} : { proxyProtocol: flags.proxyProtocol }),
    ...groupSpecOf(flags, io),
    ...guardSpecOf(flags, io),
  };
};

/** In the words of who typed it. */
const checkHost = ({ domain, subdomain, group, health }: TlsTunnelFlags): void => {
  // The name of a group is its subdomain where it says none.
  if (domain === undefined && subdomain === undefined && group === undefined) {
    throw misuse('a tls tunnel needs --subdomain or --domain: visitors are told apart by their host.');
  }
  if (health?.type === 'http') throw misuse('the health check of a tls tunnel is `--health tcp`.');
};
