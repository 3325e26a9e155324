// Commands of the tunnel client shown on pages, ready to paste into a shell on a computer with the client installed.

import type { TunnelLogEntry, UsageRegion } from '@tunnel/contract';
import { isLoopbackHost } from '@tunnel/rules/net';

export type ServerAddress = Pick<UsageRegion, 'control' | 'control_tls'>;

/** Command that installs the client in a checkout of this project, for a server without client files. Every page uses this constant. */
export const CHECKOUT_INSTALL_COMMAND = 'npm run build && npm install --global ./apps/cli';

/** Returns the command that installs the client from the server's files, for the visitor's system: PowerShell on Windows, elsewhere a shell. */
export const installCommand = (platformUrl: string, userAgent: string): string => {
  const { origin } = new URL(platformUrl);
  return /\bWindows\b/.test(userAgent) ? `irm ${origin}/install.ps1 | iex` : `curl -fsSL ${origin}/install | sh`;
};

/** Returns the `tunnel login` command. The command names the platform, because a new computer has no configuration. */
export const loginCommand = (platformUrl: string, email: string): string => {
  const { protocol, hostname, origin } = new URL(platformUrl);
  const args = ['tunnel login', '--platform', shellWord(origin), '--email', shellWord(email)];
  // Without --no-tls, the client refuses to send a password unencrypted to a remote machine.
  if (protocol === 'http:' && !isLoopback(hostname)) args.push('--no-tls');
  return args.join(' ');
};

/** Returns a `tunnel` command. Leave out `server` unless the command runs on a computer without `tunnel login`, which stores the server. */
export const tunnelCommand = (words: string, server?: ServerAddress): string =>
  ['tunnel', words, ...serverFlags(server)].join(' ');

export const httpTunnelCommand = (port: number, server?: ServerAddress): string =>
  tunnelCommand(`http ${port}`, server);

/** Returns the command for the computer that connects to a p2p tunnel. Both computers need the secret. */
export const connectPeerCommand = (name: string): string =>
  tunnelCommand(`p2p connect ${shellWord(name)} --listen ${PEER_LISTEN_PORT} --secret-file secret`);

export const PEER_LISTEN_PORT = 15432;

const serverFlags = (server: ServerAddress | undefined): string[] => serverArgs(server).map(shellWord);

/** The server to which a client without any configuration connects, unencrypted. */
const DEFAULT_SERVER = '127.0.0.1:4040';

/** Returns the command-line flags that name the server, unquoted. Empty for the client's default server. */
export const serverArgs = (server: ServerAddress | undefined): string[] => {
  if (server === undefined || server.control === '') return [];
  if (server.control === DEFAULT_SERVER && !server.control_tls) return [];
  const local = isLoopback(server.control.replace(/:\d+$/, ''));
  const flags = ['--server', server.control];
  // The client's default is TLS, except for an edge on the same computer.
  if (server.control_tls === local) flags.push(local ? '--tls' : '--no-tls');
  return flags;
};

/**
 * Returns a command that starts a sample HTTP service on 127.0.0.1. The response is plain text, so that the captured request shows its
 * content.
 */
export const localServiceCommand = (port: number): string => {
  const answer = `r.setHeader('content-type', 'text/plain').end('Hello from my machine\\n')`;
  return `node -e "http.createServer((_, r) => ${answer}).listen(${port}, '127.0.0.1')"`;
};

/**
 * Returns the public address of a tunnel. Null for p2p tunnels, for tunnels without a label, and if the region has not reported its URL.
 */
export const publicAddress = (
  { protocol, label }: Pick<TunnelLogEntry, 'protocol' | 'label'>,
  region: Pick<UsageRegion, 'http_url'> | undefined,
): string | null => {
  if (region === undefined || region.http_url === '' || label === '') return null;
  const { protocol: scheme, hostname, host } = new URL(region.http_url);
  if (protocol === 'http') return `${scheme}//${label}.${host}`;
  return protocol === 'p2p' ? null : `${hostname}:${label}`;
};

/** Returns whether visitors can reach tunnels only from the server's own machine, as on a demo server. */
export const isLocalServer = (regions: readonly Pick<UsageRegion, 'http_url'>[]): boolean => {
  const urls = regions.flatMap(({ http_url: url }) => (url === '' ? [] : [new URL(url)]));
  return urls.length > 0 && urls.every(({ hostname }) => isLoopback(hostname));
};

/** Returns whether a host is this computer. Browsers resolve every name below localhost to this computer. */
export const isLoopback = (host: string): boolean => isLoopbackHost(host) || host.endsWith('.localhost');

const shellWord = (text: string): string =>
  /^[\w./@:+[\]-]+$/.test(text) && !text.startsWith('[') ? text : `'${text.replaceAll("'", "'\\''")}'`;
