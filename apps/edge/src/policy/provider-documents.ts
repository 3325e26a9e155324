// Documents published by providers: metadata and keys. A document is cached while fresh, and longer while the provider is unavailable.
// Concurrent requests for the same document share a call. The cache is separate for every tenant, so that no tenant waits for calls of
// another tenant; documents of the operator's providers are shared.

import type { Clock } from '@tunnel/runtime';
import { createLocalJWKSet, type JWK } from 'jose';
import * as oauth from 'oauth4webapi';
import { BoundedCache, charsOfJson } from './bounded-cache.ts';
import { POLICY_CACHE_CHARS_MAX } from './limits.ts';
import { ProviderAway, type ProviderCalls, type ProviderRef } from './provider-calls.ts';

/** How long a provider's metadata is fresh. Afterwards the metadata is fetched again. */
export const PROVIDER_METADATA_FRESH_MS = 3600 * 1000;
/** How long a provider's keys are fresh. Afterwards the keys are fetched again. */
export const PROVIDER_KEYS_FRESH_MS = 600_000;
/** Maximum number of keys in a key set. A larger set is rejected. */
const PROVIDER_KEYS_MAX = 100;
/** How long metadata and keys can be used while the provider is unavailable. */
export const PROVIDER_STALE_MS = 24 * 3600 * 1000;
/**
 * Minimum interval between fetches of a key set because of tokens with an unknown key. Also the retry interval for a provider that is
 * unavailable while older documents are still usable.
 */
export const PROVIDER_KEYS_AGAIN_MS = 10_000;
/** Retry interval for a provider that is unavailable and has no cached document. */
export const PROVIDER_RETRY_MS = 1000;
/**
 * Maximum number of cached provider documents, counted separately for each tenant's copy. The least recently used document is evicted
 * first; accounts with more than a quarter of the cache lose documents before other accounts.
 */
const PROVIDER_DOCUMENTS_MAX = 10_000;

export type KeySet = ReturnType<typeof createLocalJWKSet>;

interface Kept<T> {
  readonly value: T;
  readonly fetchedAt: number;
  /** Time of the last failed attempt since the document was fetched; -Infinity if there was none. */
  readonly failedAt: number;
  readonly chars: number;
}

interface DocumentRules<T> {
  readonly freshMs: number;
  /** Parses a response. Throws if the response is not a valid document of this kind. */
  readonly read: (provider: ProviderRef, body: Buffer) => Promise<T> | T;
  /** Serializes the cached parts as JSON, to estimate their size. */
  readonly textOf: (value: T) => string;
}

const NEVER = Number.NEGATIVE_INFINITY;
/**
 * Share of the freshness time after which a document in use is refreshed in the background, so that no request has to wait for the new
 * document.
 */
const EARLY = 0.9;

/** Cache for documents of one kind, by provider and URL. */
class Documents<T> {
  readonly #calls: ProviderCalls;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #rules: DocumentRules<T>;
  readonly #kept = new BoundedCache<Kept<T>>({
    entriesMax: PROVIDER_DOCUMENTS_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });
  /** Errors of providers without a cached document. An entry expires when the provider can be tried again. */
  readonly #failed = new BoundedCache<ProviderAway>({
    entriesMax: PROVIDER_DOCUMENTS_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });
  readonly #underWay = new Map<string, Promise<T>>();

  constructor(calls: ProviderCalls, clock: Pick<Clock, 'monotonic'>, rules: DocumentRules<T>) {
    this.#calls = calls;
    this.#clock = clock;
    this.#rules = rules;
  }

  /** Returns a document from the cache or the provider. Rejects with `ProviderAway`. */
  async get(asked: ProviderRef, url: string): Promise<T> {
    const provider = asIsShared(asked);
    const now = this.#clock.monotonic();
    const key = keyOf(provider, url);
    const kept = this.#kept.get(key, now);
    if (kept === undefined) return this.#fetch(provider, url);
    const age = now - kept.fetchedAt;
    const { freshMs } = this.#rules;
    if (age < freshMs * EARLY || now - kept.failedAt < PROVIDER_KEYS_AGAIN_MS) return kept.value;
    const fetching = this.#fetch(provider, url).catch(() => kept.value);
    // No request waits for a provider that has failed before, because the wait would be five seconds each time.
    return age < freshMs || kept.failedAt !== NEVER ? kept.value : fetching;
  }

  /** Fetches a document again, unless the last fetch was a moment ago. Returns null if there is no newer document. */
  async getAgain(asked: ProviderRef, url: string): Promise<T | null> {
    const provider = asIsShared(asked);
    const now = this.#clock.monotonic();
    const kept = this.#kept.get(keyOf(provider, url), now);
    const last = Math.max(kept?.fetchedAt ?? NEVER, kept?.failedAt ?? NEVER);
    if (now - last < PROVIDER_KEYS_AGAIN_MS) return null;
    return this.#fetch(provider, url).catch(() => null);
  }

  #fetch(provider: ProviderRef, url: string): Promise<T> {
    const key = keyOf(provider, url);
    const same = this.#underWay.get(key);
    if (same !== undefined) return same;
    const failure = this.#failed.get(key, this.#clock.monotonic());
    if (failure !== undefined) return Promise.reject(failure);
    const fetching = this.#fetchNow(provider, url, key).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, fetching);
    return fetching;
  }

  async #fetchNow(provider: ProviderRef, url: string, key: string): Promise<T> {
    try {
      const { status, body } = await this.#calls.send(provider, { url, headers: { accept: 'application/json' } });
      if (status !== 200) throw new ProviderAway('status', `it answered ${status}`);
      const value = await this.#read(provider, body);
      const now = this.#clock.monotonic();
      this.#keep(provider, key, {
        value,
        fetchedAt: now,
        failedAt: NEVER,
        chars: charsOfJson(this.#rules.textOf(value)),
      });
      return value;
    } catch (error) {
      const away = error as ProviderAway;
      const now = this.#clock.monotonic();
      const kept = this.#kept.get(key, now);
      if (kept === undefined) this.#failed.set(provider.tenant ?? '', key, away, now + PROVIDER_RETRY_MS);
      else this.#keep(provider, key, { ...kept, failedAt: now });
      throw away;
    }
  }

  /** Caches a document until a fixed time after its fetch. A failed attempt does not extend the lifetime. */
  #keep({ tenant = '' }: ProviderRef, key: string, kept: Kept<T>): void {
    this.#kept.set(tenant, key, kept, kept.fetchedAt + PROVIDER_STALE_MS, kept.chars);
  }

  async #read(provider: ProviderRef, body: Buffer): Promise<T> {
    try {
      return await this.#rules.read(provider, body);
    } catch {
      throw new ProviderAway('failed', 'unexpected response');
    }
  }
}

/**
 * Cache key of a document. Includes the issuer as well as the URL: a misspelled issuer at the same URL fails, and its failure must not
 * affect policies with the correct spelling.
 */
const keyOf = ({ trust, issuer, tenant = '' }: ProviderRef, url: string): string =>
  `${trust} ${tenant}\0${issuer} ${url}`;

/**
 * Removes the visitor from the reference, and for the operator's providers the tenant. Their documents are fetched on behalf of the edge,
 * because the documents are shared by all tenants.
 */
const asIsShared = ({ trust, issuer, tenant }: ProviderRef): ProviderRef =>
  trust === 'operator' ? { trust, issuer } : { trust, issuer, tenant };

export class ProviderDocuments {
  readonly #metadata: Documents<oauth.AuthorizationServer>;
  readonly #keys: Documents<KeySet>;

  constructor(calls: ProviderCalls, clock: Pick<Clock, 'monotonic'>) {
    this.#metadata = new Documents(calls, clock, {
      freshMs: PROVIDER_METADATA_FRESH_MS,
      read: readMetadata,
      textOf: (metadata) => JSON.stringify(metadata),
    });
    this.#keys = new Documents(calls, clock, {
      freshMs: PROVIDER_KEYS_FRESH_MS,
      read: readKeySet,
      textOf: (keys) => JSON.stringify(keys.jwks()),
    });
  }

  /** Returns the metadata by discovery at the issuer. Rejects with `ProviderAway`, like the methods below. */
  metadataOf(provider: ProviderRef): Promise<oauth.AuthorizationServer> {
    return this.#metadata.get(provider, discoveryUrlOf(provider.issuer));
  }

  /** Returns the URL of the provider's keys. If `url` is null, the URL comes from the provider's metadata. */
  async keyUrlOf(provider: ProviderRef, url: string | null): Promise<string> {
    if (url !== null) return url;
    const { jwks_uri } = await this.metadataOf(provider);
    if (jwks_uri === undefined) throw new ProviderAway('failed', 'the metadata has no jwks_uri');
    return jwks_uri;
  }

  keysAt(provider: ProviderRef, url: string): Promise<KeySet> {
    return this.#keys.get(provider, url);
  }

  /** Fetches the keys again for a token with an unknown key. Returns null if no newer keys are available now. */
  newerKeysAt(provider: ProviderRef, url: string): Promise<KeySet | null> {
    return this.#keys.getAgain(provider, url);
  }
}

/** Returns the URL of the metadata: below the issuer's path, if it has one (OpenID Connect Discovery 1.0, 4). */
const discoveryUrlOf = (issuer: string): string => `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** Parses a provider's metadata. Rejects metadata that names a different issuer. */
const readMetadata = async (provider: ProviderRef, body: Buffer): Promise<oauth.AuthorizationServer> => {
  const response = new Response(new Uint8Array(body), { status: 200, headers: { 'content-type': 'application/json' } });
  const whole = await oauth.processDiscoveryResponse(new URL(provider.issuer), response);
  return only(whole, METADATA_READ) as unknown as oauth.AuthorizationServer;
};

const readKeySet = (_provider: ProviderRef, body: Buffer): KeySet => {
  const { keys } = JSON.parse(body.toString('utf8')) as { readonly keys?: unknown };
  if (!Array.isArray(keys) || keys.length > PROVIDER_KEYS_MAX) throw new TypeError('not a key set');
  return createLocalJWKSet({ keys: keys.map((key) => only(key as object, KEY_READ)) as unknown as JWK[] });
};

/**
 * Fields of the metadata and the keys that are kept. Other fields may contain a hundred thousand objects, which would need twenty times
 * the memory of their text and a turn of the event loop to copy.
 */
const METADATA_READ = [
  ...['issuer', 'authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'],
  ...['id_token_signing_alg_values_supported', 'token_endpoint_auth_methods_supported'],
  ...['authorization_response_iss_parameter_supported'],
];
const KEY_READ = ['kty', 'kid', 'use', 'key_ops', 'alg', 'crv', 'x', 'y', 'n', 'e'];
/** Maximum number of list elements kept in a field of a provider document. */
const LIST_READ_MAX = 100;

/** Copies only the named fields of an object. Throws if the value is not an object. */
const only = (given: object, names: readonly string[]): Record<string, unknown> => {
  const table = given as Readonly<Record<string, unknown>>;
  const read: Record<string, unknown> = {};
  for (const name of names) {
    const value = table[name];
    if (Array.isArray(value)) read[name] = value.slice(0, LIST_READ_MAX).filter((item) => typeof item === 'string');
    else if (typeof value === 'string' || typeof value === 'boolean') read[name] = value;
  }
  return read;
};
