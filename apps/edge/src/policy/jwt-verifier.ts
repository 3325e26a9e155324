// Bearer tokens and ID tokens: signature, issuer, audience and times, by the keys that the issuer publishes. `none` and shared secrets
// are no signatures here, whatever a token or a provider says.

import { Fault } from '@tunnel/errors';
import type { JwtAuth, PolicyEvent } from '@tunnel/policy';
import type { Clock } from '@tunnel/runtime';
import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';
import { charsOfJson } from './bounded-cache.ts';
import { POLICY_CACHE_CHARS_MAX, POLICY_CACHE_ENTRIES_MAX } from './limits.ts';
import { ProviderAway, type ProviderRef } from './provider-calls.ts';
import type { KeySet, ProviderDocuments } from './provider-documents.ts';
import { TokenCache } from './token-cache.ts';

/** a verified token is not verified again before this */
export const JWT_KNOWN_MS = 300_000;
/**
 * a longer token is not looked at
 * @limit policies: JWT, maximum length | the token is rejected
 */
const JWT_MAX_CHARS = 8 * 1024;
/** keys of a set that are tried for a token that names none of them */
const JWT_KEYS_TRIED_MAX = 8;
/** how far the clocks of a provider and of the edge may differ */
export const JWT_SKEW_SECS = 30;

/** EdDSA has two names since RFC 9864. */
export const SIGNATURE_ALGORITHMS: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];

export interface WantedToken {
  readonly provider: ProviderRef;
  /** null: as the provider's metadata says. */
  readonly keysUrl: string | null;
  /** null: whatever it says. */
  readonly issuer: string | null;
  /** One of them suffices; null: it is for whoever has it. */
  readonly audience: readonly string[] | null;
  readonly algorithms: readonly string[];
  /** Without an end it is good for ever, which only what was just asked for may be. */
  readonly mayBeEndless?: boolean | undefined;
}

/** For whom its issuer is asked. */
export type JwtCaller = Omit<ProviderRef, 'issuer'>;

const NOT_GOOD: PolicyEvent = { kind: 'jwt-verified', claims: null };

export class JwtVerifier {
  readonly #documents: ProviderDocuments;
  readonly #clock: Clock;
  readonly #known = new TokenCache<PolicyEvent>({
    entriesMax: POLICY_CACHE_ENTRIES_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });

  constructor(documents: ProviderDocuments, clock: Clock) {
    this.#documents = documents;
    this.#clock = clock;
  }

  /** `policyId`: a token is known to the policy under which it was verified. */
  perform(auth: JwtAuth, token: string, policyId: string, caller: JwtCaller): PolicyEvent | Promise<PolicyEvent> {
    if (token.length > JWT_MAX_CHARS) return NOT_GOOD;
    return this.#known.get(policyId, token, this.#clock.now()) ?? this.#verifyAndKeep(auth, token, policyId, caller);
  }

  /** null: not a good one. Rejects with `ProviderAway` when that cannot be known. */
  async verify(token: string, wanted: WantedToken): Promise<JWTPayload | null> {
    const { provider, issuer, audience, algorithms, mayBeEndless = false } = wanted;
    const options: JWTVerifyOptions = {
      ...(issuer !== null && { issuer }),
      ...(audience !== null && { audience: [...audience] }),
      algorithms: SIGNATURE_ALGORITHMS.filter((algorithm) => algorithms.includes(algorithm)),
      clockTolerance: JWT_SKEW_SECS,
      requiredClaims: mayBeEndless ? [] : ['exp'],
      currentDate: new Date(this.#clock.now()),
    };
    // A token that could never be good has nobody asked.
    if (!isTried(token, options)) return null;
    const url = await this.#documents.keyUrlOf(provider, wanted.keysUrl);
    try {
      return await verifyBy(await this.#documents.keysAt(provider, url), token, options);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) return refusedBy(error);
    }
    try {
      const newer = await this.#documents.newerKeysAt(provider, url);
      return newer === null ? null : await verifyBy(newer, token, options);
    } catch (error) {
      return refusedBy(error);
    }
  }

  async #verifyAndKeep(auth: JwtAuth, token: string, policyId: string, caller: JwtCaller): Promise<PolicyEvent> {
    const { issuer, audience, jwks_url = null } = auth;
    // Whoever is asked is who counts: an issuer that a rule merely names must not wait for keys that are slow to come from elsewhere.
    const provider = { ...caller, issuer: jwks_url ?? issuer };
    try {
      const algorithms = SIGNATURE_ALGORITHMS;
      const claims = await this.verify(token, { provider, keysUrl: jwks_url, issuer, audience, algorithms });
      if (claims === null) return NOT_GOOD;
      const event: PolicyEvent = { kind: 'jwt-verified', claims };
      const now = this.#clock.now();
      const until = Math.min((claims.exp ?? 0) * 1000, now + JWT_KNOWN_MS);
      const chars = charsOfJson(JSON.stringify(claims));
      if (until > now) this.#known.set(caller.tenant ?? '', policyId, token, event, until, chars);
      return event;
    } catch (error) {
      return { kind: 'failed', fault: new Fault('POLICY_PROVIDER_AWAY', {}, { cause: error }) };
    }
  }
}

/** Whether its head names an algorithm that is taken: the rest is for whoever has the keys. */
const isTried = (token: string, { algorithms = [] }: JWTVerifyOptions): boolean => {
  const [head = '', , , ...more] = token.split('.');
  if (more.length > 0) return false;
  try {
    const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString('utf8')) as { alg?: unknown };
    return typeof alg === 'string' && algorithms.includes(alg);
  } catch {
    return false;
  }
};

const verifyBy = async (keys: KeySet, token: string, options: JWTVerifyOptions): Promise<JWTPayload> => {
  try {
    const { payload } = await jwtVerify(token, keys, options);
    return payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    return verifyByOne(error, token, options);
  }
};

/** It names no key, and several could be meant: whose signature it has says which. */
const verifyByOne = async (
  candidates: errors.JWKSMultipleMatchingKeys,
  token: string,
  options: JWTVerifyOptions,
): Promise<JWTPayload> => {
  let left: number = JWT_KEYS_TRIED_MAX;
  for await (const key of candidates) {
    try {
      const { payload } = await jwtVerify(token, key, options);
      return payload;
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
    left -= 1;
    if (left === 0) break;
  }
  throw new errors.JWSSignatureVerificationFailed();
};

/** What is wrong with a token is its bearer's matter; only a provider that is away is not. */
const refusedBy = (error: unknown): null => {
  if (error instanceof ProviderAway) throw error;
  return null;
};
