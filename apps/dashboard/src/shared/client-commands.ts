// The commands of the tunnel client as pages offer them: ready to be pasted into a shell on a computer that has the client.

import type { TunnelLogEntry, UsageRegion } from '@tunnel/contract';
import { isLoopbackHost } from '@tunnel/rules/net';

export type ServerAddress = Pick<UsageRegion, 'control' | 'control_tls'>;

/** Installs the client. Runs in a checkout of this project. Pages take the command from here only. */
export const INSTALL_COMMAND = 'npm run build && npm install --global ./apps/cli';

/** Names the platform, because a new computer has no configuration. */
export const loginCommand = (platformUrl: string, email: string): string => {
  const { protocol, hostname, origin } = new URL(platformUrl);
  const args = ['tunnel login', '--platform', shellWord(origin), '--email', shellWord(email)];
  // The client sends a password in clear to another machine only when it is told to.
  if (protocol === 'http:' && !isLoopback(hostname)) args.push('--no-tls');
  return args.join(' ');
};

/** Leave out `server` unless the command runs on a computer without `tunnel login`, which stores the server. */
export const tunnelCommand = (words: string, server?: ServerAddress): string =>
  ['tunnel', words, ...serverFlags(server)].join(' ');

export const httpTunnelCommand = (port: number, server?: ServerAddress): string =>
  tunnelCommand(`http ${port}`, server);

/** On the machine that wants the service; both ends have the secret. */
export const connectPeerCommand = (name: string): string =>
  tunnelCommand(`p2p connect ${shellWord(name)} --listen ${PEER_LISTEN_PORT} --secret-file secret`);

export const PEER_LISTEN_PORT = 15432;

const serverFlags = (server: ServerAddress | undefined): string[] => serverArgs(server).map(shellWord);

/** The server that a client without any configuration connects to, unencrypted. */
const DEFAULT_SERVER = '127.0.0.1:4040';

/** Flags that name the server, unquoted. Empty for the client's default server. */
export const serverArgs = (server: ServerAddress | undefined): string[] => {
  if (server === undefined || server.control === '') return [];
  if (server.control === DEFAULT_SERVER && !server.control_tls) return [];
  const local = isLoopback(server.control.replace(/:\d+$/, ''));
  const flags = ['--server', server.control];
  // It uses TLS unless the edge is on its own machine.
  if (server.control_tls === local) flags.push(local ? '--tls' : '--no-tls');
  return flags;
};

/** Answers anybody who asks; only this machine can. As plain text, so that the captured request shows what it said. */
export const localServiceCommand = (port: number): string => {
  const answer = `r.setHeader('content-type', 'text/plain').end('Hello from my machine\\n')`;
  return `node -e "http.createServer((_, r) => ${answer}).listen(${port}, '127.0.0.1')"`;
};

/** Where visitors come to; null: the region has not told. */
export const publicAddress = (
  { protocol, label }: Pick<TunnelLogEntry, 'protocol' | 'label'>,
  region: Pick<UsageRegion, 'http_url'> | undefined,
): string | null => {
  if (region === undefined || region.http_url === '' || label === '') return null;
  const { protocol: scheme, hostname, host } = new URL(region.http_url);
  if (protocol === 'http') return `${scheme}//${label}.${host}`;
  return protocol === 'p2p' ? null : `${hostname}:${label}`;
};

/** Whether visitors can reach a tunnel from the server's own machine only, as on a demo server. */
export const isLocalServer = (regions: readonly Pick<UsageRegion, 'http_url'>[]): boolean => {
  const urls = regions.flatMap(({ http_url: url }) => (url === '' ? [] : [new URL(url)]));
  return urls.length > 0 && urls.every(({ hostname }) => isLoopback(hostname));
};

/** Browsers take every name below localhost for this machine, too. */
export const isLoopback = (host: string): boolean => isLoopbackHost(host) || host.endsWith('.localhost');

const shellWord = (text: string): string =>
  /^[\w./@:+[\]-]+$/.test(text) && !text.startsWith('[') ? text : `'${text.replaceAll("'", "'\\''")}'`;
