// OAuth clients with the URL of a metadata document as client id. Rules for the URL, for the content of the document, for how long the
// document is cached, and for documents on private addresses.
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { isLoopbackHost } from '@tunnel/rules/net';
import { hostOfUri, isHostAsShown, problemOfRedirectUri } from '@tunnel/rules/sign-in';

/** Maximum number of redirect URIs in a client document. Clients list a handful, and every request compares all of them. */
const OAUTH_REDIRECT_URIS_MAX = 100;
/** Maximum length of a client's name: a line in a dialog. */
const OAUTH_CLIENT_NAME_MAX_CHARS = 100;
/** Maximum length of text from a client document that a page quotes. */
const OAUTH_SHOWN_CHARS = 200;
/**
 * Minimum time that a client document is cached, regardless of its cache headers, because a sign-in flow needs the document more than
 * once.
 */
const OAUTH_DOCUMENT_LIFE_MIN_MS = 60_000;
/** Maximum time that a client document is cached, so that a removed redirect URI becomes invalid. */
const OAUTH_DOCUMENT_LIFE_MAX_MS = 24 * 60 * 60_000;

/** Validated OAuth client, either from a client document or registered by an operator. */
export interface OauthClient {
  readonly id: string;
  /** Host of the client, which is the most reliable information about its identity. */
  readonly host: string;
  /** Display name that the client gives itself. */
  readonly name: string;
  readonly redirectUris: readonly string[];
}

export type ClientVerdict =
  | { readonly kind: 'client'; readonly client: OauthClient }
  /** The client is rejected. `reason` is a text for users, and can quote text from the untrusted document. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Pattern of a host in normalized form: lower case, without user name, backslash, or anything that a URL parser would correct. */
const HOST = '(?:[a-z0-9-]+(?:\\.[a-z0-9-]+)*|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?';
const CHARACTER = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
const URL_FORM = new RegExp(`^https?://${HOST}(/(?:${CHARACTER}|/)*)(?:\\?(?:${CHARACTER}|[/?])*)?$`);
const DOTS = /^(?:\.|%2e){1,2}$/i;

/** Returns true if the client id is the URL of a client document. Ids of clients registered by an operator are not URLs. */
export const isDocumentUrl = (clientId: string): boolean => /^https?:/i.test(clientId);

/**
 * Returns the problem with the URL of a client document, as a text that completes "the client id …", or null if the document can be
 * fetched. `allowHttp` is for a platform used only on its own computer, where no attacker can intercept connections.
 */
export const problemOfDocumentUrl = (clientId: string, allowHttp: boolean): string | null => {
  if (clientId.length > RULE_LIMITS.OAUTH_URI_MAX_CHARS) return 'is too long';
  if (!allowHttp && !clientId.startsWith('https://')) return 'is not an https URL';
  if (clientId.includes('#')) return 'has a fragment';
  if (/^https?:\/\/[^/?]*@/.test(clientId)) return 'contains a user name';
  const path = URL_FORM.exec(clientId)?.[1];
  if (path === undefined) return UNUSUAL;
  if (path === '/') return 'has no path';
  if (path.split('/').some((segment) => DOTS.test(segment))) return 'has a dot segment in its path';
  // The host shown to users must be the host from which the document is fetched. For `0x7f.1`, the hosts would differ.
  return isHostAsShown(clientId) ? null : UNUSUAL;
};

/** Names of the operator. A client id with one of these names would make a stranger's program look official. */
export interface OperatorNames {
  /** Setting `[server] domain`. The hosts of tenants' tunnels are below this domain. */
  readonly domain: string;
  /** Scheme, host and port of `public_url`, without the default port of the scheme. */
  readonly publicOrigin: string;
}

/**
 * Returns the problem with the host of a client id, as a text that completes "the client id …", or null. The consent page shows the host,
 * so a client on a tenant's tunnel would look like the operator's program.
 */
export const problemOfClientHost = (clientId: string, { domain, publicOrigin }: OperatorNames): string | null => {
  const [origin = ''] = /^https?:\/\/[^/?]*/.exec(clientId) ?? [];
  const hostname = origin.replace(/^https?:\/\/|:\d+$/g, '');
  if (hostname.endsWith(`.${domain.toLowerCase()}`)) return `is below ${domain}, where anyone can open a tunnel`;
  const usual = origin.replace(/^(https:.*):443$|^(http:.*):80$/, '$1$2');
  return usual === publicOrigin ? "is on this platform's own origin" : null;
};

const UNUSUAL = 'is not a normalized URL with a path';

/** Validates a client document. `text` is the response body from the URL `clientId`. */
export const judgeClientDocument = (clientId: string, text: string): ClientVerdict => {
  const document = objectOf(text);
  if (document === null) return refuse('the client document is not a JSON object');
  if (document['client_id'] !== clientId) return refuse('the client document has a different client_id');
  const auth = document['token_endpoint_auth_method'];
  if (auth !== undefined && auth !== 'none')
    return refuse('the client uses client authentication, but only public clients are supported');
  const redirectUris = document['redirect_uris'];
  const problem = problemOfUris(redirectUris);
  if (problem !== null) return refuse(problem);
  const host = hostOfUri(clientId);
  const name = plainName(document['client_name']);
  return {
    kind: 'client',
    client: { id: clientId, host, name: name === '' ? host : name, redirectUris: redirectUris as string[] },
  };
};

const refuse = (reason: string): ClientVerdict => ({ kind: 'refused', reason });

const objectOf = (text: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
};

const problemOfUris = (uris: unknown): string | null => {
  if (!Array.isArray(uris) || uris.length === 0) return 'the client document has no redirect_uris';
  if (uris.length > OAUTH_REDIRECT_URIS_MAX)
    return `the client document lists more than ${OAUTH_REDIRECT_URIS_MAX} redirect_uris`;
  for (const uri of uris as unknown[]) {
    if (typeof uri !== 'string') return 'the client document lists a redirect URI that is not a string';
    const problem = problemOfRedirectUri(uri);
    if (problem !== null)
      return `the client document lists a redirect URI that ${problem}: ${oneLine(uri, OAUTH_SHOWN_CHARS)}`;
  }
  return null;
};

/** Converts a client's name to a single line for display. Returns an empty text if the client has no name. */
export const plainName = (name: unknown): string =>
  typeof name === 'string' ? oneLine(name, OAUTH_CLIENT_NAME_MAX_CHARS) : '';

/**
 * Converts untrusted text to a single line that is displayed as written: without line breaks and without invisible or direction-changing
 * characters. Counts characters as users see them; unpaired surrogates are removed.
 */
const oneLine = (text: string, maxChars: number): string => {
  const plain = text
    .slice(0, RULE_LIMITS.OAUTH_URI_MAX_CHARS)
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    // Many combining marks on one letter would cover the lines above. No language needs more than three.
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  return [...plain].slice(0, maxChars).join('').trim();
};

/** Returns how long a client document is cached, according to its cache-control header. */
export const documentLifeMs = (cacheControl: string | undefined): number => {
  const seconds = /(?:^|[\s,])max-age="?(\d{1,12})/i.exec(cacheControl ?? '')?.[1];
  const isShort = seconds === undefined || /no-store|no-cache/i.test(cacheControl ?? '');
  const least = OAUTH_DOCUMENT_LIFE_MIN_MS;
  const most = OAUTH_DOCUMENT_LIFE_MAX_MS;
  return isShort ? least : Math.min(Math.max(Number(seconds) * 1000, least), most);
};

export interface ClientSurroundings {
  /** Address on which the platform listens: the setting `[platform] host`. */
  readonly host: string;
  /** Hostname of `[platform] public_url`. */
  readonly publicHost: string;
  /** Trusted proxies of `[platform]` and `[server]`. */
  readonly trustedProxies: readonly string[];
}

/**
 * Returns true if client documents may be on private addresses and use http, according to `[platform.oauth] allow_private_clients`.
 * "auto" allows both only if every setting indicates that the platform is used only on this computer. Behind an edge or another proxy, a
 * platform listens on loopback and is public nevertheless.
 */
export const allowsPrivateClients = (setting: 'auto' | boolean, around: ClientSurroundings): boolean => {
  if (setting !== 'auto') return setting;
  const { host, publicHost, trustedProxies } = around;
  return isLoopbackHost(host) && isLoopbackHost(publicHost) && trustedProxies.length === 0;
};
