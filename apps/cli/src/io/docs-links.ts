// Links to the documentation: the page and heading that explain a command or an error. A platform serves the pages below /docs/guide/.
import type { ErrorCode } from '@tunnel/errors';

/** Page and heading of each command. A command without an entry has the entry of the command above it. A test checks every entry. */
export const COMMAND_PLACES: Readonly<Record<string, string>> = {
  tunnel: 'README.md',
  'tunnel http': 'http.md#names-and-urls',
  'tunnel files': 'cli.md#a-folder',
  'tunnel tcp': 'cli.md#publish-a-service',
  'tunnel tls': 'domains.md#tls-passthrough',
  'tunnel udp': 'udp.md#flows-and-delivery',
  'tunnel p2p': 'p2p.md#options',
  'tunnel start': 'configuration.md#configyml',
  'tunnel list': 'cli.md#your-tunnels-on-every-computer',
  'tunnel close': 'cli.md#your-tunnels-on-every-computer',
  'tunnel requests': 'http.md#list-requests',
  'tunnel replay': 'http.md#replay-a-request',
  'tunnel status': 'cli.md#running-clients',
  'tunnel logs': 'cli.md#running-clients',
  'tunnel groups': 'groups.md#watching-groups',
  'tunnel doctor': 'network.md#doctor',
  'tunnel mcp': 'mcp.md#add-it-to-a-host',
  'tunnel mcp-publish': 'mcp.md#publish-a-server',
  'tunnel add': 'cli.md#running-clients',
  'tunnel remove': 'cli.md#running-clients',
  'tunnel reload': 'cli.md#reload-configyml',
  'tunnel ready': 'cli.md#running-clients',
  'tunnel stop': 'cli.md#running-clients',
  'tunnel login': 'cli.md#start',
  'tunnel logout': 'cli.md#session',
  'tunnel keys': 'cli.md#keys',
  'tunnel usage': 'cli.md#usage',
  'tunnel billing': 'cli.md#billing',
  'tunnel billing cap': 'billing.md#spend-cap',
  'tunnel reserve': 'domains.md#reserve-a-name-or-a-port',
  'tunnel reservations': 'domains.md#reserve-a-name-or-a-port',
  'tunnel release': 'domains.md#release-a-name-or-a-port',
  'tunnel domains': 'domains.md#custom-domains',
  'tunnel domains add': 'domains.md#dns-records',
  'tunnel domains remove': 'domains.md#remove-a-domain',
  'tunnel init': 'cli.md#start',
  'tunnel check': 'configuration.md#check-a-file',
  'tunnel group-key': 'groups.md#joining',
  'tunnel policy': 'policy.md#test-inspect-and-change-a-policy',
  'tunnel service': 'cli.md#systemd-service',
  'tunnel completion': 'cli.md#qr-code-browser-shell-completion',
};

/**
 * Page and heading of errors, by the beginning of their codes. The longest beginning applies. An error without an entry has its row in
 * docs/errors.md.
 */
export const ERROR_PLACES: Readonly<Record<string, string>> = {
  ACCOUNT_PAST_DUE: 'billing.md#failed-payments-and-cancellation',
  AUTH_TOKEN: 'cli.md#keys',
  BILLING: 'billing.md#subscribing',
  CLIENT_KEY_MISSING: 'cli.md#keys',
  CLIENT_LOCAL_FILES: 'cli.md#a-folder',
  CLIENT_LOGIN_NEEDED: 'cli.md#session',
  CLIENT_LOG_FILE: 'cli.md#log-files',
  CLIENT_MCP_SERVER: 'mcp.md#publish-a-server',
  CLIENT_NOT_RUNNING: 'cli.md#running-clients',
  CLIENT_P2P: 'p2p.md#options',
  CLIENT_PEER: 'p2p.md#connection-errors',
  CLIENT_PROXY: 'network.md#proxy-errors',
  CLIENT_SERVER: 'network.md#doctor',
  CLIENT_SERVICE: 'cli.md#systemd-service',
  CLIENT_TARGET_NOT_ALLOWED: 'cli.md#what-is-never-published',
  CONFIG: 'configuration.md#configyml',
  DOMAIN: 'domains.md#custom-domains',
  GROUP: 'groups.md#joining',
  KEY: 'cli.md#keys',
  LOGIN: 'cli.md#session',
  MCP: 'mcp.md#tools',
  MCP_TARGET_NOT_ALLOWED: 'mcp.md#allowed-targets',
  P2P: 'p2p.md#connection-errors',
  POLICY: 'policy.md#how-rules-run',
  RESERVATION: 'domains.md#reserve-a-name-or-a-port',
  SPEND_CAP: 'billing.md#spend-cap',
  TUNNEL_CUSTOM_SUBDOMAIN: 'domains.md#reserve-a-name-or-a-port',
  TUNNEL_DOMAIN: 'domains.md#custom-domains',
  TUNNEL_P2P: 'p2p.md#names',
  TUNNEL_PORT_IN_USE: 'domains.md#reserve-a-name-or-a-port',
  TUNNEL_SUBDOMAIN: 'domains.md#reserve-a-name-or-a-port',
  TUNNEL_TLS: 'domains.md#tls-passthrough',
};

/** Returns the place for a command, such as `tunnel keys create`. */
export const placeOfCommand = (path: string): string =>
  COMMAND_PLACES[path] ?? placeOfCommand(path.slice(0, Math.max(path.lastIndexOf(' '), 'tunnel'.length)));

export const placeOfError = (code: ErrorCode): string => {
  const words = code.split('_');
  const beginnings = words.map((_, index) => words.slice(0, words.length - index).join('_'));
  return beginnings.map((one) => ERROR_PLACES[one]).find((place) => place !== undefined) ?? `errors.md#${code}`;
};

/**
 * Returns the URL of a place, or the path of the file in the repository if no platform is known. An edge without a platform serves no
 * pages.
 */
export const docsAddress = (place: string, platformUrl: string | null): string => {
  if (platformUrl === null) return `docs/${place}`;
  const [file = '', heading] = place.split('#');
  const page = file === 'README.md' ? '' : file.replace(/\.md$/, '');
  return `${platformUrl.replace(/\/+$/, '')}/docs/guide/${page}${heading === undefined ? '' : `#${heading}`}`;
};

/** Matches a page that a hint of the catalogue names, such as docs/policy.md. */
const NAMED_PAGE = /\bdocs\/([\w-]+\.md(?:#[\w-]+)?)/g;

/** Replaces the pages named in a text by their URLs. */
export const withDocsAddresses = (text: string, platformUrl: string): string =>
  text.replace(NAMED_PAGE, (_, place: string) => docsAddress(place, platformUrl));
