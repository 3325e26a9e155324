// What a person reads on the console: when the server is ready where everything is and the next command to type; and each mail's link.
import { join, relative } from 'node:path';
import type { Edge } from '@tunnel/edge';
import type { MailNotice } from '@tunnel/platform';
import type { ServerConfig } from '@tunnel/runtime';
import type { RunFile } from './data-dir.ts';

const DEFAULT_CONTROL = '127.0.0.1:4040';

export interface ReadyFacts {
  readonly run: RunFile;
  readonly dataDir: string;
  readonly domain: string;
  /** Where people open the platform; null: at this machine alone. */
  readonly publicUrl: string | null;
  readonly signUp: ServerConfig['platform']['sign_up'];
  readonly tcpPortRange: readonly [number, number];
  readonly tls: boolean;
  /** [server] control_on_public. */
  readonly controlOnPublic: boolean;
  readonly workingDir: string;
  /** What its operator should know before others come: see start-notes.ts. */
  readonly notes: readonly string[];
}

export const readyText = (facts: ReadyFacts): string => {
  const { run, tcpPortRange } = facts;
  const platformUrl = facts.publicUrl ?? run.platform_url;
  const edgeLines = [
    `  control      ${run.control}${facts.tls ? ' (TLS)' : ''}${alsoAt(onePort(facts))}`,
    `  edge API     ${run.api_url}/api/status`,
    `  metrics      ${run.metrics_url}`,
    `  HTTP tunnels ${httpTunnels(facts)}`,
    `  TCP tunnels  ${facts.domain}, ports ${tcpPortRange[0]}-${tcpPortRange[1]}`,
  ];
  const nextLines = [
    'Next, in another terminal, publish a local web service (3000 is its port):',
    `  ${nextCommand(facts)}`,
    '',
  ];
  return [
    `tunnel-server is ready (pid ${run.pid})`,
    '',
    ...(run.platform_url === null
      ? []
      : [
          `  dashboard    ${platformUrl}/app/ (${signUpText(facts.signUp, `${platformUrl}/app/signup`)})`,
          `  platform API ${platformUrl} (API docs: ${platformUrl}/docs)`,
        ]),
    ...(run.simulator_url === null ? [] : [`  payments     ${run.simulator_url} (test mode, no real charges)`]),
    ...(run.control === null ? [] : edgeLines),
    ...keyLines(facts),
    `  data         ${shortPath(facts.dataDir, facts.workingDir)}`,
    '',
    ...(facts.notes.length === 0 ? [] : [...facts.notes.map((note) => `  ${note}`), '']),
    ...(run.control === null ? [] : nextLines),
    '',
  ].join('\n');
};

/** How the first people come in. */
const signUpText = (signUp: ReadyFacts['signUp'], page: string): string => {
  switch (signUp) {
    case 'open':
      return `sign up: ${page}`;
    case 'invite':
      return 'by invitation: tunnel-server admin invite EMAIL';
    case 'closed':
      return 'sign-up is closed: tunnel-server admin create-user EMAIL';
  }
};

/** Of a simulator that runs alone: whoever calls it needs its keys. */
const keyLines = ({ run, dataDir, workingDir }: ReadyFacts): string[] => {
  if (run.simulator_url === null || run.platform_url !== null) return [];
  const file = shortPath(join(dataDir, 'simulator', 'secrets.json'), workingDir);
  return [`  keys         ${file} (secret_key for calls, webhook_secret for webhooks)`];
};

/** As a visitor would type it. */
const httpTunnels = ({ run, domain }: ReadyFacts): string =>
  [run.https_url, run.http_url]
    .filter((url) => url !== null)
    .map((url) => new URL(url))
    .map(({ protocol, port }) => `${protocol}//<name>.${domain}${port === '' ? '' : `:${port}`}`)
    .join(', ');

/** Where visitors and clients come by one port, by the name that the certificate is for; null: clients have a port of their own. */
const onePort = ({ run, domain, controlOnPublic }: ReadyFacts): string | null =>
  run.https_url === null || !controlOnPublic ? null : `${domain}:${new URL(run.https_url).port || '443'}`;

const alsoAt = (address: string | null): string => (address === null ? '' : `, and ${address}`);

export const nextCommand = (facts: ReadyFacts): string => {
  const { run, tls, workingDir } = facts;
  const words = ['npx', 'tunnel', 'http', '3000'];
  if (run.admin_token_file === null) words.unshift("TUNNEL_API_KEY='<the admin_token of your config>'");
  else words.push('--token-file', quoted(shortPath(run.admin_token_file, workingDir)));
  const server = onePort(facts) ?? (run.control === DEFAULT_CONTROL ? null : run.control);
  if (server !== null) words.push('--server', server);
  // To this machine clients come in clear unless they are told.
  if (tls) words.push('--tls');
  return words.join(' ');
};

const shortPath = (path: string, workingDir: string): string => {
  const short = relative(workingDir, path);
  return short === '' || short.startsWith('..') ? path : short;
};

const quoted = (text: string): string => (/^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

type Address = Edge['addresses']['control'];

/** Where the parts of a server are; null: it does not run them. */
export interface Reach {
  readonly platform: (Address & { readonly tls?: boolean }) | null;
  readonly edge: Omit<Edge['addresses'], 'stackApi'> | null;
  readonly simulatorUrl: string | null;
  /** host:port of the responder for challenges. */
  readonly dns: string | null;
}

export const describeRun = (reach: Reach, adminTokenFile: string | null, pid: number): RunFile => {
  const { platform, edge, simulatorUrl, dns } = reach;
  return {
    pid,
    platform_url: platform === null ? null : `${platform.tls === true ? 'https' : 'http'}://${hostPort(platform)}`,
    api_url: edge === null ? null : `${edge.api.tls ? 'https' : 'http'}://${hostPort(edge.api)}`,
    control: edge === null ? null : hostPort(edge.control),
    http_url: edge === null ? null : httpUrl(edge.http),
    https_url: edge?.https ? `https://${hostPort(edge.https)}` : null,
    metrics_url: edge === null ? null : httpUrl(edge.metrics, '/metrics'),
    simulator_url: simulatorUrl,
    dns,
    udp_ports: edge?.udpPorts ?? [],
    admin_token_file: edge === null ? null : adminTokenFile,
  };
};

/** Without a mail server, the console is where its reader finds the link. */
export const mailText = ({ recipient, subject, link, file }: MailNotice): string =>
  `mail to ${recipient}: ${subject}\n  ${link === null ? file : link.reveal()}\n`;

const EVERY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** What a person or a script on this machine can type: host:port, with loopback for a server that listens everywhere. */
export const hostPort = ({ host, port }: Address): string => {
  const reachable = EVERY_ADDRESS.has(host) ? '127.0.0.1' : host;
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
};

export const httpUrl = (address: Address, path = ''): string => `http://${hostPort(address)}${path}`;
