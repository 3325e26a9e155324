// Notes at startup: warnings about the configuration, differences between the config file and the built-in defaults, and how to trust the
// local CA of this machine.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type ConfiguredParts, configWarnings, type ServerConfig } from '@tunnel/config/server';

/** Settings of a stack that starts without a config file. Suited to a single machine, with generous limits. */
export const STACK_DEFAULTS = {
  load_balancing: { enabled: true },
  platform: { plans: { free: { tunnel_limit: 100 } } },
} as const;

/**
 * Returns the notes about a configuration. `systemPorts` is the range from which the operating system assigns ports to outgoing
 * connections; null if unknown.
 */
export const startNotes = (
  config: ServerConfig,
  parts: ConfiguredParts,
  systemPorts: PortRange | null = readSystemPorts(),
): string[] => {
  const warnings = configWarnings(config, parts);
  const isSaid = (key: string): boolean => warnings.some((warning) => warning.key === key);
  return [
    ...warnings.map(({ text }) => `warning: ${text}`),
    ...(parts === 'platform' ? [] : udpPorts(config, systemPorts)),
    ...(parts === 'stack' ? differences(config).filter(({ key }) => !isSaid(key)) : []).map(({ text }) => text),
  ];
};

type PortRange = readonly [from: number, to: number];

/**
 * Warns if the UDP ports of tunnels overlap the system's ports for outgoing connections. A different program may use such a port when a
 * tunnel needs it, and the edge treats its own datagrams from such a port as a loop.
 */
const udpPorts = ({ limits }: ServerConfig, systemPorts: PortRange | null): string[] => {
  const [from, to] = limits.udp_port_range;
  if (systemPorts === null || to < systemPorts[0] || from > systemPorts[1]) return [];
  const own = `${from}-${to}`;
  const system = systemPorts.join('-');
  return [
    `warning: limits.udp_port_range (${own}) overlaps the system's ports for outgoing connections (${system}, net.ipv4.ip_local_port_range), so datagrams can be lost: change one of the ranges`,
  ];
};

const readSystemPorts = (): PortRange | null => {
  try {
    return parsePortRange(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'));
  } catch {
    // The system is not Linux, or the file is not readable.
    return null;
  }
};

/** Parses the kernel's port range, two numbers. Null if the text has a different format. */
export const parsePortRange = (text: string): PortRange | null => {
  const [, from, to] = /^\s*(\d{1,5})\s+(\d{1,5})\s*$/.exec(text) ?? [];
  return from === undefined || to === undefined ? null : [Number(from), Number(to)];
};

interface Difference {
  readonly key: string;
  readonly text: string;
}

/** Returns notes about settings that change if an operator adds a config file, because a start without a file has different defaults. */
const differences = ({ load_balancing, platform }: ServerConfig): Difference[] => {
  const keys = [
    ['load_balancing.enabled', load_balancing.enabled, STACK_DEFAULTS.load_balancing.enabled],
    [
      'platform.plans.free.tunnel_limit',
      platform.plans['free']?.tunnel_limit ?? 'none',
      STACK_DEFAULTS.platform.plans.free.tunnel_limit,
    ],
  ] as const;
  return keys
    .filter(([, here, without]) => here !== without)
    .map(([key, here, without]) => ({ key, text: `note: ${key} is ${here} (${without} without --config)` }));
};

export interface TrustFacts {
  readonly dataDir: string;
  readonly workingDir: string;
  readonly system: NodeJS.Platform;
}

/**
 * Returns instructions to trust the local CA of this machine, for the operating system of the server. The CA is valid for localhost names
 * only. Empty if the local CA is off.
 */
export const trustNotes = (
  { tls }: Pick<ServerConfig, 'tls'>,
  { dataDir, workingDir, system }: TrustFacts,
): string[] => {
  if (!tls.local_ca) return [];
  const path = join(dataDir, 'local-ca', 'ca.pem');
  const short = relative(workingDir, path);
  const file = quoted(short.startsWith('..') ? path : short);
  return [
    `https for localhost names uses the CA in ${file}. Trust it once (the CA is limited to localhost):`,
    ...(SYSTEMS[system] ?? SYSTEMS.linux).map((command) => `  ${command.replace('FILE', file)}`),
    `or for a single program: curl --cacert ${file}, NODE_EXTRA_CA_CERTS=${file}`,
  ];
};

const LINUX = [
  'sudo cp FILE /usr/local/share/ca-certificates/tunnel-local.crt && sudo update-ca-certificates   (Debian, Ubuntu)',
  'sudo trust anchor FILE   (Fedora, Arch); Firefox and Chrome: import the file under Certificates, Authorities',
];

const SYSTEMS: { readonly [system in NodeJS.Platform]?: readonly string[] } & { readonly linux: readonly string[] } = {
  linux: LINUX,
  darwin: ['sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain FILE'],
  win32: ['certutil -addstore -f ROOT FILE   (as administrator)'],
};

const quoted = (path: string): string => (/^[\w./@:+\\-]+$/.test(path) ? path : `"${path}"`);
