// Clients that name themselves by the URL of a document about them: which URLs may be one, what the document must say, for how long it
// is believed, and whether it may lie on a private address.
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { isLoopbackHost } from '@tunnel/rules/net';
import { hostOfUri, isHostAsShown, problemOfRedirectUri } from '@tunnel/rules/sign-in';

/** a program lists a handful; each is compared at each request */
const OAUTH_REDIRECT_URIS_MAX = 100;
/** what a client calls itself: a line in a dialog */
const OAUTH_CLIENT_NAME_MAX_CHARS = 100;
/** of a stranger’s text that a page quotes */
const OAUTH_SHOWN_CHARS = 200;
/** a document about a client is believed for so long whatever it says: a flow asks for it more than once */
const OAUTH_DOCUMENT_LIFE_MIN_MS = 60_000;
/** and no longer than that: a redirect URI that was taken back must end */
const OAUTH_DOCUMENT_LIFE_MAX_MS = 24 * 60 * 60_000;

/** What is left of a client when it was found to be in order, wherever it comes from. */
export interface OauthClient {
  readonly id: string;
  /** Who that is, as far as anybody knows. */
  readonly host: string;
  /** What it calls itself. */
  readonly name: string;
  readonly redirectUris: readonly string[];
}

export type ClientVerdict =
  | { readonly kind: 'client'; readonly client: OauthClient }
  /** `reason` for people; it may quote the document, a stranger's words. */
  | { readonly kind: 'refused'; readonly reason: string };

/** In its one spelling: lower case, no user, no backslash, nothing that a parser would mend. */
const HOST = '(?:[a-z0-9-]+(?:\\.[a-z0-9-]+)*|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?';
const CHARACTER = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
const URL_FORM = new RegExp(`^https?://${HOST}(/(?:${CHARACTER}|/)*)(?:\\?(?:${CHARACTER}|[/?])*)?$`);
const DOTS = /^(?:\.|%2e){1,2}$/i;

/** Ids of clients that an operator registered are no URLs. */
export const isDocumentUrl = (clientId: string): boolean => /^https?:/i.test(clientId);

/** Completes "the client id …"; null: a document may be looked for there. `allowHttp`: at home, where nobody else listens. */
export const problemOfDocumentUrl = (clientId: string, allowHttp: boolean): string | null => {
  if (clientId.length > RULE_LIMITS.OAUTH_URI_MAX_CHARS) return 'is too long';
  if (!allowHttp && !clientId.startsWith('https://')) return 'is not an https URL';
  if (clientId.includes('#')) return 'has a fragment';
  if (/^https?:\/\/[^/?]*@/.test(clientId)) return 'contains a user name';
  const path = URL_FORM.exec(clientId)?.[1];
  if (path === undefined) return UNUSUAL;
  if (path === '/') return 'has no path';
  if (path.split('/').some((segment) => DOTS.test(segment))) return 'has a dot segment in its path';
  // What people are shown as its host is where the document is fetched: `0x7f.1` would be another one.
  return isHostAsShown(clientId) ? null : UNUSUAL;
};

/** Names of the operator. A client id with one of these names would make a stranger's program look official. */
export interface OperatorNames {
  /** `[server] domain`. Tenants have hosts below this domain. */
  readonly domain: string;
  /** Scheme, host and port of `public_url`, without the port that is usual for the scheme. */
  readonly publicOrigin: string;
}

/** Completes "the client id …", or returns null. The consent page shows the host of the client id, so a tenant's tunnel would look like the operator's program. */
export const problemOfClientHost = (clientId: string, { domain, publicOrigin }: OperatorNames): string | null => {
  const [origin = ''] = /^https?:\/\/[^/?]*/.exec(clientId) ?? [];
  const hostname = origin.replace(/^https?:\/\/|:\d+$/g, '');
  if (hostname.endsWith(`.${domain.toLowerCase()}`)) return `is below ${domain}, where anyone can open a tunnel`;
  const usual = origin.replace(/^(https:.*):443$|^(http:.*):80$/, '$1$2');
  return usual === publicOrigin ? "is on this platform's own origin" : null;
};

const UNUSUAL = 'is not a normalized URL with a path';

/** `text`: the answer at that URL. */
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

/** As a name is shown; '': it has none. */
export const plainName = (name: unknown): string =>
  typeof name === 'string' ? oneLine(name, OAUTH_CLIENT_NAME_MAX_CHARS) : '';

/**
 * A stranger's words, one line as it reads: without what turns the direction of text, hides, or breaks the line. Of characters as people
 * count them; a lone half of one is no text.
 */
const oneLine = (text: string, maxChars: number): string => {
  const plain = text
    .slice(0, RULE_LIMITS.OAUTH_URI_MAX_CHARS)
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    // A heap of marks on one letter is drawn over the lines above; no language needs more.
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  return [...plain].slice(0, maxChars).join('').trim();
};

/** How long a document is believed, by the cache-control that came with it. */
export const documentLifeMs = (cacheControl: string | undefined): number => {
  const seconds = /(?:^|[\s,])max-age="?(\d{1,12})/i.exec(cacheControl ?? '')?.[1];
  const isShort = seconds === undefined || /no-store|no-cache/i.test(cacheControl ?? '');
  const least = OAUTH_DOCUMENT_LIFE_MIN_MS;
  const most = OAUTH_DOCUMENT_LIFE_MAX_MS;
  return isShort ? least : Math.min(Math.max(Number(seconds) * 1000, least), most);
};

export interface ClientSurroundings {
  /** `[platform] host`. */
  readonly host: string;
  /** Of `[platform] public_url`. */
  readonly publicHost: string;
  /** Those of `[platform]` and of `[server]`. */
  readonly trustedProxies: readonly string[];
}

/**
 * Whether documents may lie on private addresses and come over http: `[platform.oauth] allow_private_clients`. "auto": while everything
 * says that the platform is for this machine only. Behind an edge or another proxy it listens on loopback and is public all the same.
 */
export const allowsPrivateClients = (setting: 'auto' | boolean, around: ClientSurroundings): boolean => {
  if (setting !== 'auto') return setting;
  const { host, publicHost, trustedProxies } = around;
  return isLoopbackHost(host) && isLoopbackHost(publicHost) && trustedProxies.length === 0;
};
