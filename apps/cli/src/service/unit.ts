// The systemd unit of a client, as text: what starts it, what brings it back and what does not, and what it may touch. No key is ever in it.
import { misuse } from '../io/problem-report.ts';

export interface UnitFacts {
  readonly kind: 'user' | 'system';
  readonly unit: string;
  /** The executable and its first arguments: Node.js and the program. */
  readonly program: readonly string[];
  /** Absolute. */
  readonly config: string;
  /** Of a system service: whose files it reads. null: root's, and then without any of root's rights. */
  readonly user: string | null;
  /** Of a system service: the folders that it writes. */
  readonly writable: readonly string[];
}

/** The first line of every unit of ours: whatever else is at its path is somebody's own, and stays. */
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

/** What the manager of a user can do too: without mounts, which it may not make everywhere. */
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

/** Homes can be read: a tunnel may publish a folder there, and Node.js itself may live in one. */
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

/** `%` begins a specifier everywhere in a unit. */
const escaped = (text: string): string => oneLineOf(text).replaceAll('%', '%%');

const commandLine = ([program = '', ...args]: readonly string[]): string => {
  // Its path is taken as it is, but for specifiers; quotes and backslashes in it are refused by systemd however they are written.
  if (/["'\\]/.test(program)) {
    throw misuse(`the program path in a unit file cannot contain quotes or backslashes: ${program}`);
  }
  return [inQuotes(escaped(program)), ...args.map((word) => inQuotes(unexpanded(word).replaceAll('$', '$$$$')))].join(
    ' ',
  );
};

const pathList = (path: string): string => inQuotes(`-${unexpanded(path)}`);

/** Neither specifiers nor escapes. */
const unexpanded = (text: string): string => escaped(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"');

const inQuotes = (word: string): string => (/^[\w@:,.+/=-]+$/.test(word) ? word : `"${word}"`);
