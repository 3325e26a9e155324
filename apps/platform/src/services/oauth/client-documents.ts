// Documents about clients, at the URLs that are their ids: fetched by the guard against SSRF, judged, and believed for a while. Strangers
// name these URLs, so everything is bounded: time, bytes, how many at once, how many for one network, how many are kept.

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

/** Of a document about a client; honest ones have a few hundred. */
const OAUTH_DOCUMENT_MAX_BYTES = 64 * 1024;
/** For such a document, from the look-up of the name to its last byte: a person waits. */
export const OAUTH_DOCUMENT_TIMEOUT_MS = 5000;
/** Documents and refusals that are known; the one that was asked for longest ago leaves first. */
const OAUTH_DOCUMENTS_MAX = 1000;
/** Why one was refused is known for so long: its makers correct it and try again. */
const OAUTH_DOCUMENT_REFUSED_MS = 60_000;
/** Documents fetched at once; more callers are told to come back. */
export const OAUTH_DOCUMENTS_AT_ONCE = 16;
/** The share of one network, so that slow servers of one stranger delay only that stranger. */
export const OAUTH_DOCUMENTS_PER_NETWORK = 4;
/** What a caller is told to wait while too many are fetched: as long as one may take. */
const OAUTH_BUSY_RETRY_AFTER_SECS = 5;

export interface ClientDocumentsOptions {
  /** Its rule on addresses knows whether private ones are allowed. */
  readonly fetch: GuardedFetch;
  /** As for private addresses: over http anybody in between writes the document. */
  readonly allowHttp: boolean;
  /** Names that no client may have. null: the platform is for this machine only. */
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
  /** By URL: who asks for the same one waits for the same answer. */
  readonly #underWay = new Map<string, Promise<ClientVerdict>>();
  readonly #underWayOf = new Map<string, number>();

  constructor(options: ClientDocumentsOptions) {
    this.#options = options;
    this.#known = new Cache({ max: OAUTH_DOCUMENTS_MAX, clock: options.clock });
  }

  /** `network`: of whoever asks. Throws OAUTH_CLIENTS_BUSY. */
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

/** As the configuration has it: at home a program's document may lie on this machine. */
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
