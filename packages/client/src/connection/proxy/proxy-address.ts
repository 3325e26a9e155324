// A proxy, out of the URL that a person wrote: how it is spoken to, where it is, and who we are to it. Its password is in no text that it gives.
import { isIP } from 'node:net';
import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';

export type ProxyKind = 'http' | 'https' | 'socks5' | 'socks5h';

export interface Proxy {
  /** `socks5` has names resolved here, `socks5h` there; `http` and `https` (TLS up to the proxy) there too. */
  readonly kind: ProxyKind;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** As people may read it: without a name and a password. */
  readonly text: string;
  readonly credentials: ProxyCredentials | null;
}

export interface ProxyCredentials {
  readonly user: Secret;
  readonly password: Secret;
}

/** Where none is written: those of the schemes, and the one of SOCKS (RFC 1928). */
const DEFAULT_PORTS: Readonly<Record<ProxyKind, number>> = { http: 80, https: 443, socks5: 1080, socks5h: 1080 };

const EXPECTED = 'must be http://host:port, https://, socks5:// or socks5h://, or none';

/** RFC 1929 has a byte for the length of each; longer ones are no passwords anywhere. */
const CREDENTIAL_MAX_BYTES = 255;

export interface ProxyParseOptions {
  /** Who gave it, for the refusal: `--proxy`, `HTTPS_PROXY`. */
  readonly source: string;
  /** user:password, for a URL that has none. */
  readonly auth?: Secret | undefined;
  /** `host:port` alone means http://, as in the variables of most programs. */
  readonly schemeOptional?: boolean;
}

/** Throws a Fault that says what is wrong, never what was written: it may hold a password. */
export const parseProxy = (text: string, options: ProxyParseOptions): Proxy => {
  const refuse = (why: string): Fault => new Fault('CLIENT_USAGE', { reason: `${options.source} ${why}` });
  const trimmed = text.trim();
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed);
  const whole = hasScheme || options.schemeOptional !== true ? trimmed : `http://${trimmed}`;
  const [, scheme = '', rest = ''] = /^([a-z0-9+.-]+):\/\/(.*)$/is.exec(whole) ?? [];
  const kind = kindOf(scheme.toLowerCase());
  if (kind === null) throw refuse(EXPECTED);
  // The URL parser knows authority, userinfo and brackets of http alone: the others are read as if they were one.
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

/** The URL parser leaves out :80, which is the default of http alone. */
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
  // A line break would begin another header; a colon in the name would end it (RFC 7617).
  const isBad = /\p{Cc}/u.test(user + password) || user.includes(':') || user === '';
  if (isBad) throw refuse('has an invalid user name or password');
  if ([user, password].some((part) => Buffer.byteLength(part) > CREDENTIAL_MAX_BYTES)) {
    throw refuse(`has a user name or password longer than ${CREDENTIAL_MAX_BYTES} bytes`);
  }
  return { user: new Secret(user), password: new Secret(password) };
};
