// Console output for the operator: addresses and the next command when the server is ready, and the link of each email.
import { join, relative } from 'node:path';
import type { ServerConfig } from '@tunnel/config/server';
import type { MailNotice } from '@tunnel/platform';
import type { RunFile } from '../data-dir/data-dir.ts';

const DEFAULT_CONTROL = '127.0.0.1:4040';

export interface ReadyFacts {
  readonly run: RunFile;
  readonly dataDir: string;
  readonly domain: string;
  /** Public URL of the platform. Null if the platform is reachable only from this machine. */
  readonly publicUrl: string | null;
  readonly signUp: ServerConfig['platform']['sign_up'];
  /** Invitation link for the first account. Null once an account exists. */
  readonly firstAccount: string | null;
  readonly tcpPortRange: readonly [number, number];
  /** Ports in public URLs: [server] public_http_port and public_https_port. 0 for the port of the server. */
  readonly publishedPorts: { readonly http: number; readonly https: number };
  readonly tls: boolean;
  /** Whether clients can also connect on the visitors' ports: [server] control_on_public. */
  readonly controlOnPublic: boolean;
  readonly workingDir: string;
  /** Whether the server was started in a checkout, where the client is run with npx. */
  readonly isCheckout: boolean;
  /** Notes and warnings for the operator about the configuration, from start-notes.ts. */
  readonly notes: readonly string[];
}

/** Returns the ready message with every address of the server, for logs and for `--verbose`. */
export const readyText = (facts: ReadyFacts): string => {
  const { run, tcpPortRange } = facts;
  const edgeLines =
    run.control === null
      ? []
      : [
          `  control      ${shown(run.control)}${facts.tls ? ' (TLS)' : ''}${alsoAt(onePort(facts))}`,
          `  edge API     ${shown(run.api_url)}/api/status`,
          `  metrics      ${shown(run.metrics_url)}`,
          `  HTTP tunnels ${httpTunnels(facts).join(', ')}`,
          `  TCP tunnels  ${facts.domain}, ports ${tcpPortRange[0]}-${tcpPortRange[1]}`,
        ];
  return [
    `Hatchway is ready (pid ${run.pid})`,
    '',
    ...dashboardLines(facts).map(([label, text]) => `  ${label.padEnd(12)} ${text}`),
    ...firstAccountLines(facts),
    ...(run.platform_url === null
      ? []
      : [
          `  platform API ${platformUrl(facts)} (reference: ${platformUrl(facts)}/docs)`,
          `  docs         ${platformUrl(facts)}/docs/guide/`,
        ]),
    ...(run.simulator_url === null ? [] : [`  payments     ${shown(run.simulator_url)} (test mode, no real charges)`]),
    ...edgeLines,
    ...keyLines(facts),
    `  data         ${shortPath(facts.dataDir, facts.workingDir)}`,
    '',
    ...noteLines(facts.notes),
    ...nextLines(facts),
    '',
  ].join('\n');
};

/**
 * Returns the short ready message for a terminal: the dashboard, the tunnel URLs, and the next command. Contains warnings, but no notes.
 */
export const briefText = (facts: ReadyFacts): string => {
  const [tunnels = ''] = httpTunnels(facts);
  const lines = [...dashboardLines(facts), ['tunnels', tunnels] as const];
  const runFile = shortPath(join(facts.dataDir, 'run.json'), facts.workingDir);
  return [
    `Hatchway is ready (pid ${facts.run.pid})`,
    '',
    ...lines.map(([label, text]) => `  ${label.padEnd(9)}  ${text}`),
    ...firstAccountLines(facts),
    '',
    ...noteLines(facts.notes.filter((note) => !note.startsWith('note: '))),
    ...nextLines(facts),
    `Press Ctrl-C to stop. All addresses: ${runFile}. Details: --verbose.`,
    '',
  ].join('\n');
};

const dashboardLines = (facts: ReadyFacts): (readonly [label: string, text: string])[] => {
  if (facts.run.platform_url === null) return [];
  const url = platformUrl(facts);
  return [
    ['dashboard', `${url}/app/`],
    ['sign-up', `${signUpText(facts.signUp, `${url}/app/signup`)} (platform.sign_up = "${facts.signUp}")`],
  ];
};

const firstAccountLines = ({ firstAccount }: ReadyFacts): string[] =>
  firstAccount === null ? [] : [`  first account: ${firstAccount}`];

const noteLines = (notes: readonly string[]): string[] =>
  notes.length === 0 ? [] : [...notes.map((note) => `  ${note}`), ''];

const nextLines = (facts: ReadyFacts): string[] =>
  facts.run.control === null
    ? []
    : ['Next, publish a local web service on port 3000 from another terminal:', `  ${nextCommand(facts)}`, ''];

const platformUrl = ({ publicUrl, run }: ReadyFacts): string => publicUrl ?? shown(run.platform_url);

/** Formats an address of this machine with localhost, as in the documentation. For programs, run.json contains numeric addresses. */
const shown = (address: string | null): string => (address ?? '').replace('127.0.0.1', 'localhost');

/** Returns the page or the command for creating an account. */
const signUpText = (signUp: ReadyFacts['signUp'], page: string): string => {
  switch (signUp) {
    case 'open':
      return page;
    case 'invite':
      return 'tunnel-server admin invite EMAIL';
    case 'closed':
      return 'tunnel-server admin create-user EMAIL';
  }
};

/** Returns a line with the key file of a simulator that runs without a platform, because callers need the keys. */
const keyLines = ({ run, dataDir, workingDir }: ReadyFacts): string[] => {
  if (run.simulator_url === null || run.platform_url !== null) return [];
  const file = shortPath(join(dataDir, 'simulator', 'secrets.json'), workingDir);
  return [`  keys         ${file} (secret_key for calls, webhook_secret for webhooks)`];
};

/** Returns the URLs of HTTP tunnels as visitors type them. */
const httpTunnels = ({ run, domain, publishedPorts }: ReadyFacts): string[] =>
  [publicUrlOf(run.https_url, publishedPorts.https), publicUrlOf(run.http_url, publishedPorts.http)]
    .filter((url) => url !== null)
    .map(({ protocol, port }) => `${protocol}//<name>.${domain}${port === '' ? '' : `:${port}`}`);

/** Returns a URL of this machine with the published port. */
const publicUrlOf = (url: string | null, published: number): URL | null => {
  if (url === null) return null;
  const at = new URL(url);
  if (published !== 0) at.port = String(published);
  return at;
};

/** Returns the address shared by visitors and clients, with the host name of the certificate. Null if clients use a separate port. */
const onePort = ({ run, domain, controlOnPublic, publishedPorts }: ReadyFacts): string | null => {
  const url = publicUrlOf(run.https_url, publishedPorts.https);
  return url === null || !controlOnPublic ? null : `${domain}:${url.port || '443'}`;
};

const alsoAt = (address: string | null): string => (address === null ? '' : `, and ${address}`);

export const nextCommand = (facts: ReadyFacts): string => {
  const { run, tls, workingDir, isCheckout } = facts;
  const words = [...(isCheckout ? ['npx', 'hatchway'] : ['tunnel']), 'http', '3000'];
  if (run.admin_token_file === null) words.unshift("TUNNEL_API_KEY='<the admin_token of your config>'");
  else words.push('--token-file', quoted(shortPath(run.admin_token_file, workingDir)));
  const server =
    onePort(facts) ?? (run.control === DEFAULT_CONTROL || run.control === null ? null : shown(run.control));
  if (server !== null) words.push('--server', server);
  // By default, clients on this machine connect unencrypted.
  if (tls) words.push('--tls');
  return words.join(' ');
};

/** Shortens a path to be relative to the working directory. A service has the working directory /, so its paths stay absolute. */
const shortPath = (path: string, workingDir: string): string => {
  if (workingDir === '/') return path;
  const short = relative(workingDir, path);
  return short === '' || short.startsWith('..') ? path : short;
};

const quoted = (text: string): string => (/^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Returns the console text for an email. Without a mail server, the console is the only place with the link. */
export const mailText = ({ recipient, subject, link, file }: MailNotice): string =>
  `mail to ${recipient}: ${subject}\n  ${link === null ? file : link.reveal()}\n`;
