// Parses a proxy URL: protocol, host, port and credentials. The password appears in no text.
import { isIP } from 'node:net';
import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';

export type ProxyKind = 'http' | 'https' | 'socks5' | 'socks5h';

export interface Proxy {
  /** `socks5` resolves names locally. `socks5h`, `http` and `https` (TLS to the proxy) let the proxy resolve names. */
  readonly kind: ProxyKind;
  /** Host name or IP address of the proxy, without brackets. */
  readonly host: string;
  readonly port: number;
  /** URL of the proxy for display, without user name and password. */
  readonly text: string;
  readonly credentials: ProxyCredentials | null;
}

export interface ProxyCredentials {
  readonly user: Secret;
  readonly password: Secret;
}

/** Default ports of proxy URLs by scheme; for SOCKS as in RFC 1928. */
const DEFAULT_PORTS: Readonly<Record<ProxyKind, number>> = { http: 80, https: 443, socks5: 1080, socks5h: 1080 };

const EXPECTED = 'must be http://host:port, https://, socks5:// or socks5h://, or none';

/** Maximum length of a user name or password: RFC 1929 encodes the length in one byte. */
const CREDENTIAL_MAX_BYTES = 255;

export interface ProxyParseOptions {
  /** Where the proxy's URL comes from, for error messages: `--proxy`, `HTTPS_PROXY`. */
  readonly source: string;
  /** Credentials `user:password` for a proxy URL without credentials. */
  readonly auth?: Secret | undefined;
  /** Accepts a proxy `host:port` as http://host:port, as most programs do for environment variables. */
  readonly schemeOptional?: boolean;
}

/** Throws a Fault that describes the problem without quoting the URL, because the URL may contain a password. */
export const parseProxy = (text: string, options: ProxyParseOptions): Proxy => {
  const refuse = (why: string): Fault => new Fault('CLIENT_USAGE', { reason: `${options.source} ${why}` });
  const trimmed = text.trim();
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed);
  const whole = hasScheme || options.schemeOptional !== true ? trimmed : `http://${trimmed}`;
  const [, scheme = '', rest = ''] = /^([a-z0-9+.-]+):\/\/(.*)$/is.exec(whole) ?? [];
  const kind = kindOf(scheme.toLowerCase());
  if (kind === null) throw refuse(EXPECTED);
  // The URL parser understands credentials and brackets only for http, so other schemes are parsed as http.
  const parsed = URL.canParse(`http://${rest}`) ? new URL(`http://${rest}`) : null;
  if (parsed === null || parsed.hostname === '') throw refuse(EXPECTED);
  if (parsed.pathname !== '/' || parsed.search !== '' || parsed.hash !== '') {
    throw refuse('must end after the port: a proxy URL has no path');
  }
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = portOf(rest, parsed, kind);
  if (port === 0) throw refuse('needs a port from 1 to 65535');
  const inUrl = parsed.username !== '' || parsed.password !== '';
  const credentials = inUrl ? credentialsOfUrl(parsed, refuse) : credentialsOfFile(options.auth, refuse);
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  return { kind, host, port, text: `${kind}://${authority}`, credentials };
};

const kindOf = (scheme: string): ProxyKind | null =>
  Object.hasOwn(DEFAULT_PORTS, scheme) ? (scheme as ProxyKind) : null;

/** Returns the port. The URL parser drops :80, which is the default only for http. */
const portOf = (rest: string, { port }: URL, kind: ProxyKind): number => {
  if (port !== '') return Number(port);
  const authority = rest.slice(rest.lastIndexOf('@') + 1);
  return /:0*80\/?$/.test(authority) ? 80 : DEFAULT_PORTS[kind];
};

type Refuse = (why: string) => Fault;

const credentialsOfUrl = ({ username, password }: URL, refuse: Refuse): ProxyCredentials => {
  try {
    return checked(decodeURIComponent(username), decodeURIComponent(password), refuse);
  } catch (error) {
    throw error instanceof Fault ? error : refuse('has a percent sign in the user name or password: write %25 instead');
  }
};

const credentialsOfFile = (auth: Secret | undefined, refuse: Refuse): ProxyCredentials | null => {
  if (auth === undefined) return null;
  const text = auth.reveal().replace(/\r?\n$/, '');
  const colon = text.indexOf(':');
  if (colon < 1) throw refuse('has a proxy_auth_file without user:password');
  return checked(text.slice(0, colon), text.slice(colon + 1), refuse);
};

const checked = (user: string, password: string, refuse: Refuse): ProxyCredentials => {
  // A line break would start another header, and a colon would end the user name (RFC 7617).
  const isBad = /\p{Cc}/u.test(user + password) || user.includes(':') || user === '';
  if (isBad) throw refuse('has an invalid user name or password');
  if ([user, password].some((part) => Buffer.byteLength(part) > CREDENTIAL_MAX_BYTES)) {
    throw refuse(`has a user name or password longer than ${CREDENTIAL_MAX_BYTES} bytes`);
  }
  return { user: new Secret(user), password: new Secret(password) };
};
