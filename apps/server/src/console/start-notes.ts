// Notes of the start: warnings about the configuration, settings in which a file differs from a start without a file, and how the authority of
// this machine is trusted.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type ConfiguredParts, configWarnings, type ServerConfig } from '@tunnel/config/server';

/** The file that `npm start` stands for when it is given none: one machine, nothing held back. */
export const STACK_DEFAULTS = {
  load_balancing: { enabled: true },
  platform: { plans: { free: { tunnel_limit: 100 } } },
} as const;

/** `systemPorts`: of which the system takes one for each connection that a program makes; null: not known. */
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

/** Another program may have such a port when a tunnel needs it, and what the edge itself sends from there looks like a loop. */
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
    // Not Linux, or not to be read.
    return null;
  }
};

/** Of the kernel's text, two numbers; null: it is something else. */
export const parsePortRange = (text: string): PortRange | null => {
  const [, from, to] = /^\s*(\d{1,5})\s+(\d{1,5})\s*$/.exec(text) ?? [];
  return from === undefined || to === undefined ? null : [Number(from), Number(to)];
};

interface Difference {
  readonly key: string;
  readonly text: string;
}

/** Whoever tried the server without a file, and gives it one, meets these by surprise. */
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
 * How the authority of this machine is trusted, in the words of the system that the server runs on. Trusting it is good for localhost names alone.
 * Empty: there is none.
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
