// Text of a server.toml: tables and keys with a comment for each known key. Pure functions.

export type Table = { readonly [key: string]: string | number | boolean | Table };

/** Comments by the path of the key. */
const COMMENTS: Readonly<Record<string, string>> = {
  data_dir: 'database, secrets and state',
  'server.host': 'visitors and clients, on every IPv4 address; "::" adds IPv6',
  'server.api_host': 'edge API: this machine only',
  'server.domain': 'tunnels are at <name>.<domain>',
  'server.http_port': 'redirects visitors to https',
  'server.https_port': 'visitors and clients',
  'acme.enabled': 'certificates are issued and renewed automatically',
  'acme.dns': 'this server answers the challenges for wildcard certificates',
  'acme.email': 'contact address for the certificate authority',
  'tls.local_ca': 'https for localhost names, with a CA of this machine',
  'load_balancing.enabled': 'groups: several computers behind the same URL',
  'platform.public_url': 'dashboard and API',
  'platform.mail.smtp_url': 'may contain a password: keep this file private',
  'platform.mail.from': 'sender of invitations and verification links',
  'platform.plans.free.tunnel_limit': 'open tunnels per account',
};

export const settingsText = (head: readonly string[], tables: Table): string =>
  [...head.map((line) => `# ${line}`), ...tableLines(tables, []), ''].join('\n');

/** TOML strings have the escapes of JSON, but TOML also requires an escape for the character DEL. */
const tomlValue = (value: string | number | boolean): string => JSON.stringify(value).replaceAll('\x7f', '\\u007f');

/** Returns the lines of a TOML table. Keys come before nested tables, as TOML requires. */
const tableLines = (table: Table, path: readonly string[]): string[] => {
  const keys: (readonly [text: string, comment: string | undefined])[] = [];
  const below: string[] = [];
  for (const [key, value] of Object.entries(table)) {
    const at = [...path, key];
    if (typeof value === 'object') below.push(...tableLines(value, at));
    else keys.push([`${key} = ${tomlValue(value)}`, COMMENTS[at.join('.')]]);
  }
  const width = Math.max(0, ...keys.map(([text]) => text.length));
  const lines = keys.map(([text, comment]) => (comment === undefined ? text : `${text.padEnd(width)}  # ${comment}`));
  if (lines.length === 0) return below;
  return ['', ...(path.length === 0 ? [] : [`[${path.join('.')}]`]), ...lines, ...below];
};

/**
 * Whether a server.toml sets nothing but the data directory of an installed package. Such a file comes unchanged from the package and can
 * be replaced without losing a setting.
 */
export const setsNothing = (text: string): boolean =>
  text
    .split('\n')
    .map((line) => line.trim())
    .every(
      (line) => line === '' || line.startsWith('#') || /^data_dir\s*=\s*"\/var\/lib\/tunnel"\s*(#.*)?$/.test(line),
    );
