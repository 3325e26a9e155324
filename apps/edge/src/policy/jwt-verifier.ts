// Verifies bearer tokens and ID tokens: signature, issuer, audience and times, with the keys that the issuer publishes. The algorithm
// `none` and shared secrets are never accepted, whatever a token or a provider claims.

import { Fault } from '@tunnel/errors';
import type { JwtAuth, PolicyEvent } from '@tunnel/policy';
import type { Clock } from '@tunnel/runtime';
import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';
import { charsOfJson } from './bounded-cache.ts';
import { POLICY_CACHE_CHARS_MAX, POLICY_CACHE_ENTRIES_MAX } from './limits.ts';
import { ProviderAway, type ProviderRef } from './provider-calls.ts';
import type { KeySet, ProviderDocuments } from './provider-documents.ts';
import { TokenCache } from './token-cache.ts';

/** How long a verified token is cached before it is verified again. */
export const JWT_KNOWN_MS = 300_000;
/**
 * Maximum length of a token in characters. Longer tokens are rejected without a check.
 * @limit policies: JWT, maximum length | the token is rejected
 */
const JWT_MAX_CHARS = 8 * 1024;
/** Maximum number of keys tried for a token that does not name its key. */
const JWT_KEYS_TRIED_MAX = 8;
/** Tolerated difference between the clocks of a provider and of the edge. */
export const JWT_SKEW_SECS = 30;

/** Accepted signature algorithms. EdDSA has two names since RFC 9864. */
export const SIGNATURE_ALGORITHMS: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];

export interface WantedToken {
  readonly provider: ProviderRef;
  /** URL of the provider's keys. If null, the URL comes from the provider's metadata. */
  readonly keysUrl: string | null;
  /** Expected issuer. If null, every issuer is accepted. */
  readonly issuer: string | null;
  /** Accepted audiences, of which the token must have at least one. If null, the audience is not checked. */
  readonly audience: readonly string[] | null;
  readonly algorithms: readonly string[];
  /** True if a token without an expiry time is accepted. Such a token is valid forever, so set only for a token requested a moment ago. */
  readonly mayBeEndless?: boolean | undefined;
}

/** The tenant and visitor for which the issuer is called. */
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

  /** Verifies a bearer token. A verified token is cached only for the policy with this `policyId`. */
  perform(auth: JwtAuth, token: string, policyId: string, caller: JwtCaller): PolicyEvent | Promise<PolicyEvent> {
    if (token.length > JWT_MAX_CHARS) return NOT_GOOD;
    return this.#known.get(policyId, token, this.#clock.now()) ?? this.#verifyAndKeep(auth, token, policyId, caller);
  }

  /**
   * Verifies a token and returns its claims, or null if the token is invalid. Rejects with `ProviderAway` if the keys are not available.
   */
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
    // Do not call the provider for a token that can never be valid.
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
    // Queue the call under the URL that is called: an issuer that a rule merely names must not wait for slow keys from another server.
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

/** Returns true if the token's header names an accepted algorithm. The rest can only be checked with the keys. */
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

/**
 * Verifies a token that does not name its key although several keys of the issuer are possible: tries the keys until the signature
 * matches.
 */
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

/** Returns null for an invalid token, which is the bearer's mistake; rethrows the error if the provider is unavailable. */
const refusedBy = (error: unknown): null => {
  if (error instanceof ProviderAway) throw error;
  return null;
};
