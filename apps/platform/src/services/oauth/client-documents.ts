// Fetches, validates and caches client documents, which are at the URLs used as client ids. Strangers choose the URLs, so a guard against
// SSRF fetches the documents, and everything is limited: time, bytes, concurrent requests in total and per network, and cached documents.

import { type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { problemOfAddress } from '@tunnel/rules/net';
import { Cache, type Clock, createGuardedFetch, type GuardedFetch } from '@tunnel/runtime';
import {
  allowsPrivateClients,
  type ClientVerdict,
  documentLifeMs,
  judgeClientDocument,
  type OperatorNames,
  problemOfClientHost,
  problemOfDocumentUrl,
} from './client-document.rules.ts';

/** Maximum size of a client document. Usual documents have a few hundred bytes. */
const OAUTH_DOCUMENT_MAX_BYTES = 64 * 1024;
/** Timeout for fetching a client document, from the DNS lookup to the last byte. Short, because a user is waiting. */
export const OAUTH_DOCUMENT_TIMEOUT_MS = 5000;
/** Maximum number of cached documents and rejections. The least recently used is evicted first. */
const OAUTH_DOCUMENTS_MAX = 1000;
/** How long the rejection of a document is cached. Short, because developers correct a document and try again. */
const OAUTH_DOCUMENT_REFUSED_MS = 60_000;
/** Maximum number of concurrent fetches of documents. Further callers get OAUTH_CLIENTS_BUSY. */
export const OAUTH_DOCUMENTS_AT_ONCE = 16;
/** Maximum number of concurrent fetches per network, so that a stranger's slow servers delay only that stranger. */
export const OAUTH_DOCUMENTS_PER_NETWORK = 4;
/** Retry-After value for callers while too many documents are fetched: the timeout of a fetch. */
const OAUTH_BUSY_RETRY_AFTER_SECS = 5;

export interface ClientDocumentsOptions {
  /** Fetch function that rejects forbidden addresses, including private addresses unless allowed. */
  readonly fetch: GuardedFetch;
  /**
   * True if documents may use http. Allowed in the same cases as private addresses, because over http, any network node on the path could
   * change the document.
   */
  readonly allowHttp: boolean;
  /** Names that clients must not use. Null if the platform is used only on this computer. */
  readonly operator: OperatorNames | null;
  readonly clock: Clock;
}

interface Fetched {
  readonly verdict: ClientVerdict;
  readonly lifeMs: number;
}

export class ClientDocuments {
  readonly #options: ClientDocumentsOptions;
  readonly #known: Cache<string, ClientVerdict>;
  /** Fetches in progress by URL. Requests for the same URL share a fetch. */
  readonly #underWay = new Map<string, Promise<ClientVerdict>>();
  readonly #underWayOf = new Map<string, number>();

  constructor(options: ClientDocumentsOptions) {
    this.#options = options;
    this.#known = new Cache({ max: OAUTH_DOCUMENTS_MAX, clock: options.clock });
  }

  /** Finds the client of a document URL. `network` is the network of the caller. Throws OAUTH_CLIENTS_BUSY. */
  async find(url: string, network: string): Promise<ClientVerdict> {
    const { allowHttp, operator } = this.#options;
    const problem =
      problemOfDocumentUrl(url, allowHttp) ?? (operator === null ? null : problemOfClientHost(url, operator));
    if (problem !== null) return { kind: 'refused', reason: `the client id ${problem}` };
    const known = this.#known.get(url);
    return known ?? this.#underWay.get(url) ?? this.#start(url, network);
  }

  #start(url: string, network: string): Promise<ClientVerdict> {
    const ofNetwork = this.#underWayOf.get(network) ?? 0;
    const isFull = this.#underWay.size >= OAUTH_DOCUMENTS_AT_ONCE;
    if (isFull || ofNetwork >= OAUTH_DOCUMENTS_PER_NETWORK)
      throw new Fault('OAUTH_CLIENTS_BUSY', { seconds: OAUTH_BUSY_RETRY_AFTER_SECS });
    this.#underWayOf.set(network, ofNetwork + 1);
    const verdict = this.#look(url).finally(() => {
      this.#underWay.delete(url);
      this.#release(network);
    });
    this.#underWay.set(url, verdict);
    return verdict;
  }

  #release(network: string): void {
    const left = (this.#underWayOf.get(network) ?? 1) - 1;
    if (left === 0) this.#underWayOf.delete(network);
    else this.#underWayOf.set(network, left);
  }

  async #look(url: string): Promise<ClientVerdict> {
    const { verdict, lifeMs } = await this.#fetch(url);
    this.#known.set(url, verdict, lifeMs);
    return verdict;
  }

  async #fetch(url: string): Promise<Fetched> {
    const answer = await this.#options.fetch(url, {
      maxBytes: OAUTH_DOCUMENT_MAX_BYTES,
      timeoutMs: OAUTH_DOCUMENT_TIMEOUT_MS,
      headers: { accept: 'application/json' },
    });
    if (answer.kind !== 'answer') return refuse(`cannot read the client document: ${answer.reason}`);
    const { status, headers, body } = answer;
    if (status >= 300 && status < 400) return refuse('the client document is a redirect, which is not followed');
    if (status !== 200) return refuse(`cannot read the client document: status ${status}`);
    const verdict = judgeClientDocument(url, body.toString('utf8'));
    if (verdict.kind === 'refused') return refuse(verdict.reason);
    return { verdict, lifeMs: documentLifeMs(headers['cache-control']) };
  }
}

const refuse = (reason: string): Fetched => ({
  verdict: { kind: 'refused', reason },
  lifeMs: OAUTH_DOCUMENT_REFUSED_MS,
});

/**
 * Creates the document cache according to the configuration. On a platform used only on its own computer, documents may be on private
 * addresses.
 */
export const createClientDocuments = (
  { platform, server }: Pick<ServerConfig, 'platform' | 'server'>,
  clock: Clock,
): ClientDocuments => {
  const around = {
    host: platform.host,
    publicHost: new URL(platform.public_url).hostname,
    trustedProxies: [...platform.trusted_proxies, ...server.trusted_proxies],
  };
  const allowed = allowsPrivateClients(platform.oauth.allow_private_clients, around);
  const isAtHome = allowsPrivateClients('auto', around);
  const operator = isAtHome ? null : { domain: server.domain, publicOrigin: new URL(platform.public_url).origin };
  const fetch = createGuardedFetch({ problemOfAddress: (address) => problemOfAddress(address, allowed), clock });
  return new ClientDocuments({ fetch, allowHttp: allowed, operator, clock });
};
