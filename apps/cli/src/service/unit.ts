// The text of a client's systemd unit: start command, restart rules and sandbox. A unit never contains an API key.
import { misuse } from '../io/problem-report.ts';

export interface UnitFacts {
  readonly kind: 'user' | 'system';
  readonly unit: string;
  /** Executable with the first arguments: Node.js and the program. */
  readonly program: readonly string[];
  /** Absolute path of the config file. */
  readonly config: string;
  /** Name of the user for a system service, with access to the user's files. Null for root, but without root's capabilities. */
  readonly user: string | null;
  /** Folders writable for a system service. */
  readonly writable: readonly string[];
}

/** First line of every unit created by `tunnel service`. A unit without the line was written by hand, and is kept. */
export const UNIT_MARK = '# Made by `tunnel service install`; run it again to renew this file.';

export const unitText = (facts: UnitFacts): string => {
  const isSystem = facts.kind === 'system';
  const systemctl = isSystem ? 'systemctl' : 'systemctl --user';
  return [
    UNIT_MARK,
    `# Put your own changes into a drop-in file: ${systemctl} edit ${facts.unit}`,
    '[Unit]',
    `Description=Tunnel client (${escaped(facts.config)})`,
    ...(isSystem ? ['Wants=network-online.target', 'After=network-online.target'] : []),
    '# Keep restarting, even if the network is down for days.',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    ...SERVICE_LINES,
    `ExecStart=${commandLine([...facts.program, 'start', '--config', facts.config])}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    ...(facts.user === null ? [] : [`User=${escaped(facts.user)}`]),
    '',
    '# Sandbox: the client only reads its files and uses the network.',
    ...CONFINED,
    ...(isSystem ? [...CONFINED_BY_ROOT, ...facts.writable.map((path) => `ReadWritePaths=${pathList(path)}`)] : []),
    '',
    '[Install]',
    `WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}`,
    '',
  ].join('\n');
};

const SERVICE_LINES: readonly string[] = [
  'Type=notify',
  'NotifyAccess=all',
  'WatchdogSec=60',
  '# Restart after every exit, except where a restart cannot help: wrong settings (2), key refused (3), every tunnel refused (4),',
  '# account closed (6).',
  'Restart=always',
  'RestartSec=5',
  'RestartPreventExitStatus=2 3 4 6',
  '# The service is ready once every tunnel is open. There is no start timeout: one failing tunnel must not stop the others.',
  'TimeoutStartSec=infinity',
  '# Open connections have 30 s to finish.',
  'TimeoutStopSec=40',
  'KillMode=mixed',
  'LimitNOFILE=65536',
];

/**
 * Sandbox settings supported even by the service manager of a user. Settings that need mounts are left out, because the user's manager
 * cannot mount on every system.
 */
const CONFINED: readonly string[] = [
  'UMask=0077',
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'SystemCallArchitectures=native',
  'SystemCallFilter=@system-service',
  'SystemCallFilter=~@privileged',
  'SystemCallErrorNumber=EPERM',
];

/**
 * Additional sandbox settings of system services. Home folders stay readable, because a tunnel can publish a folder there, and Node.js
 * itself can be installed there.
 */
const CONFINED_BY_ROOT: readonly string[] = [
  'CapabilityBoundingSet=',
  'AmbientCapabilities=',
  'PrivateDevices=yes',
  'PrivateTmp=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHome=read-only',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'ProtectProc=invisible',
  'ProtectSystem=strict',
  'RemoveIPC=yes',
];

const oneLineOf = (text: string): string => {
  if (!/[\p{Cc}]/u.test(text)) return text;
  throw misuse(`a path in a unit file cannot contain control characters: ${JSON.stringify(text)}`);
};

/** Escapes `%`, which begins a specifier everywhere in a unit. */
const escaped = (text: string): string => oneLineOf(text).replaceAll('%', '%%');

const commandLine = ([program = '', ...args]: readonly string[]): string => {
  // systemd takes the program's path literally, except for specifiers. Quotes and backslashes in the path are rejected by systemd,
  // however they are escaped.
  if (/["'\\]/.test(program)) {
    throw misuse(`the program path in a unit file cannot contain quotes or backslashes: ${program}`);
  }
  return [inQuotes(escaped(program)), ...args.map((word) => inQuotes(unexpanded(word).replaceAll('$', '$$$$')))].join(
    ' ',
  );
};

const pathList = (path: string): string => inQuotes(`-${unexpanded(path)}`);

/** Escapes specifiers, backslashes and quotes. */
const unexpanded = (text: string): string => escaped(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"');

const inQuotes = (word: string): string => (/^[\w@:,.+/=-]+$/.test(word) ? word : `"${word}"`);
