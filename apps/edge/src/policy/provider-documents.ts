// What providers publish: their metadata and their keys. Kept while they are fresh; kept on while the provider is away; one call for all
// who want the same at once. Each tenant has what it asked for itself, so that nobody waits for the calls of another; what the operator's providers
// say is the same for all.

import type { Clock } from '@tunnel/runtime';
import { createLocalJWKSet, type JWK } from 'jose';
import * as oauth from 'oauth4webapi';
import { BoundedCache, charsOfJson } from './bounded-cache.ts';
import { POLICY_CACHE_CHARS_MAX } from './limits.ts';
import { ProviderAway, type ProviderCalls, type ProviderRef } from './provider-calls.ts';

/** what a provider says of itself is asked for again after this */
export const PROVIDER_METADATA_FRESH_MS = 3600 * 1000;
/** its keys are asked for again after this */
export const PROVIDER_KEYS_FRESH_MS = 600_000;
/** keys of one set; a longer one is no set of keys */
const PROVIDER_KEYS_MAX = 100;
/** both are good for this long while it is away */
export const PROVIDER_STALE_MS = 24 * 3600 * 1000;
/** a token that names an unknown key has the keys asked for again, but not more often than this; nor is a provider that is away asked more often while old answers are good */
export const PROVIDER_KEYS_AGAIN_MS = 10_000;
/** one that is away and of which nothing is known is not asked again before this */
export const PROVIDER_RETRY_MS = 1000;
/** documents of providers that are kept, each tenant’s own; the least used go first, those of accounts with more than a quarter before others */
const PROVIDER_DOCUMENTS_MAX = 10_000;

export type KeySet = ReturnType<typeof createLocalJWKSet>;

interface Kept<T> {
  readonly value: T;
  readonly fetchedAt: number;
  /** Of the last attempt that failed; -Infinity: none. */
  readonly failedAt: number;
  readonly chars: number;
}

interface DocumentRules<T> {
  readonly freshMs: number;
  /** Throws what is no such document. */
  readonly read: (provider: ProviderRef, body: Buffer) => Promise<T> | T;
  /** What of it is kept, as JSON. */
  readonly textOf: (value: T) => string;
}

const NEVER = Number.NEGATIVE_INFINITY;
/** From this part of its time on a document that is in use is asked for again: the new one is there before anybody has to wait for it. */
const EARLY = 0.9;

/** Documents of one kind, by provider and URL. */
class Documents<T> {
  readonly #calls: ProviderCalls;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #rules: DocumentRules<T>;
  readonly #kept = new BoundedCache<Kept<T>>({
    entriesMax: PROVIDER_DOCUMENTS_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });
  /** Those of which nothing is known, and when they failed. */
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

  /** Rejects with `ProviderAway`. */
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
    // Nobody waits for one that has failed already: it would be five seconds, again and again.
    return age < freshMs || kept.failedAt !== NEVER ? kept.value : fetching;
  }

  /** Anew, unless it is new already or was just asked for; null: there is nothing newer. */
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

  /** Until its end since it was fetched: to fail does not make it younger. */
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

/** By its issuer, too: one who names it in another spelling would fail for all who name it rightly. */
const keyOf = ({ trust, issuer, tenant = '' }: ProviderRef, url: string): string =>
  `${trust} ${tenant}\0${issuer} ${url}`;

/** What the operator's providers say is asked for by the edge itself: it is for all, and in nobody's turn. */
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

  /** By discovery at the issuer. Rejects with `ProviderAway`, as the others do. */
  metadataOf(provider: ProviderRef): Promise<oauth.AuthorizationServer> {
    return this.#metadata.get(provider, discoveryUrlOf(provider.issuer));
  }

  /** `url` null: as its metadata says. */
  async keyUrlOf(provider: ProviderRef, url: string | null): Promise<string> {
    if (url !== null) return url;
    const { jwks_uri } = await this.metadataOf(provider);
    if (jwks_uri === undefined) throw new ProviderAway('failed', 'the metadata has no jwks_uri');
    return jwks_uri;
  }

  keysAt(provider: ProviderRef, url: string): Promise<KeySet> {
    return this.#keys.get(provider, url);
  }

  /** For a token that names a key which is not among them; null: none newer may be had now. */
  newerKeysAt(provider: ProviderRef, url: string): Promise<KeySet | null> {
    return this.#keys.getAgain(provider, url);
  }
}

/** OpenID Connect Discovery 1.0, 4: below whatever path the issuer has. */
const discoveryUrlOf = (issuer: string): string => `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** It must be its own issuer's: another one's document at this URL is refused. */
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

/** What is read of each: the rest may be a hundred thousand tables, which take twenty times their text, and a turn of the event loop to copy. */
const METADATA_READ = [
  ...['issuer', 'authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'],
  ...['id_token_signing_alg_values_supported', 'token_endpoint_auth_methods_supported'],
  ...['authorization_response_iss_parameter_supported'],
];
const KEY_READ = ['kty', 'kid', 'use', 'key_ops', 'alg', 'crv', 'x', 'y', 'n', 'e'];
/** Of a list in them. */
const LIST_READ_MAX = 100;

/** Throws for what is no table. */
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
