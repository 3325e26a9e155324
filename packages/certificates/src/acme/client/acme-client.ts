// ACME client for an account at an authority (RFC 8555): account, orders, authorizations, challenges, certificates, renewal information.
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  FlattenedSign,
  generateKeyPair,
  importJWK,
  type JWK,
} from 'jose';
import { z } from 'zod';
import { type AcmeAnswer, badAnswer, type CallBounds, createAcmeHttp, readAnswer } from './acme-http.ts';
import { AcmeProblem } from './acme-problem.ts';
import { type AcmeDirectory, SignedCalls, type Signer } from './signed-calls.ts';

/** Maximum size of a certificate chain downloaded from an authority. */
const CHAIN_MAX_BYTES = 128 * 1024;
/** Maximum names in a certificate. Let's Encrypt allows 100. */
const NAMES_MAX = 100;

const ORDER = z.object({
  status: z.enum(['pending', 'ready', 'processing', 'valid', 'invalid']),
  expires: z.string().optional(),
  identifiers: z.array(z.object({ type: z.string(), value: z.string() })).max(NAMES_MAX),
  authorizations: z.array(z.url()).max(NAMES_MAX),
  finalize: z.url(),
  certificate: z.url().optional(),
  error: z.unknown().optional(),
});

const CHALLENGE = z.object({
  type: z.string(),
  url: z.url(),
  status: z.enum(['pending', 'processing', 'valid', 'invalid']).default('pending'),
  token: z
    .string()
    .regex(/^[\w-]{1,256}$/)
    .optional(),
  error: z.unknown().optional(),
});

const AUTHORIZATION = z.object({
  status: z.enum(['pending', 'valid', 'invalid', 'deactivated', 'expired', 'revoked']),
  identifier: z.object({ type: z.string(), value: z.string() }),
  wildcard: z.boolean().optional(),
  // A challenge of an authorization. Challenges of unknown types may have any form.
  challenges: z.array(z.union([CHALLENGE, z.unknown().transform(() => null)])).max(20),
});

const RENEWAL_INFO = z.object({ suggestedWindow: z.object({ start: z.iso.datetime(), end: z.iso.datetime() }) });

export type AcmeChallenge = z.infer<typeof CHALLENGE>;

export interface AcmeOrder extends z.infer<typeof ORDER> {
  readonly url: string;
  readonly expiresAt: number | null;
  readonly retryAfterMs: number | null;
}

export interface AcmeAuthorization {
  readonly url: string;
  readonly status: z.infer<typeof AUTHORIZATION>['status'];
  /** Host name as in the certificate, including `*.`. */
  readonly name: string;
  readonly challenges: readonly AcmeChallenge[];
  readonly retryAfterMs: number | null;
}

export interface AcmeClientOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly ca?: string | undefined;
}

export interface AccountOptions {
  /** Contact address for the authority. Empty if the authority gets none. */
  readonly email: string;
  /** External account binding (RFC 8555, 7.3.4), `hmacKey` in base64url. */
  readonly eab?: { readonly kid: string; readonly hmacKey: string } | undefined;
}

export interface OrderOptions {
  readonly profile?: string | undefined;
  /** Renewal id of the certificate that the order replaces (RFC 9773). */
  readonly replaces?: string | undefined;
}

export class AcmeClient {
  readonly #calls: SignedCalls;

  constructor({ directory, clock, ca }: AcmeClientOptions) {
    this.#calls = new SignedCalls(directory, createAcmeHttp({ clock, ca }), clock);
  }

  directory(bounds: CallBounds = {}): Promise<AcmeDirectory> {
    return this.#calls.directory(bounds);
  }

  /** Returns the account of this key. Creates the account if needed and accepts the terms of service. */
  async openAccount(privateKey: JWK, { email, eab }: AccountOptions, bounds: CallBounds = {}): Promise<AcmeAccount> {
    const { newAccount } = await this.#calls.directory(bounds);
    const key = (await importJWK(privateKey, 'ES256')) as CryptoKey;
    const jwk = publicPart(privateKey);
    const payload = {
      termsOfServiceAgreed: true,
      ...(email === '' ? {} : { contact: [`mailto:${email}`] }),
      ...(eab === undefined ? {} : { externalAccountBinding: await bindingOf(eab, jwk, newAccount) }),
    };
    const answer = await this.#calls.post(newAccount, payload, { key, by: { jwk } }, bounds);
    const url = locationOf(answer, newAccount);
    return new AcmeAccount(this.#calls, url, { key, by: { kid: url } }, await calculateJwkThumbprint(jwk));
  }

  /** Returns an account with a known URL, without a call to the authority. */
  async knownAccount(privateKey: JWK, url: string): Promise<AcmeAccount> {
    const key = (await importJWK(privateKey, 'ES256')) as CryptoKey;
    const thumbprint = await calculateJwkThumbprint(publicPart(privateKey));
    return new AcmeAccount(this.#calls, url, { key, by: { kid: url } }, thumbprint);
  }

  /** `window` is null if the authority has no renewal information for the certificate. */
  async renewalInfo(
    renewalId: string,
    bounds: CallBounds = {},
  ): Promise<{ window: { start: number; end: number } | null; retryAfterMs: number | null }> {
    const { renewalInfo } = await this.#calls.directory(bounds);
    if (renewalInfo === undefined) return { window: null, retryAfterMs: null };
    const url = `${renewalInfo.replace(/\/$/, '')}/${renewalId}`;
    const answer = await this.#calls.get(url, bounds);
    const { start, end } = readAnswer(RENEWAL_INFO, answer, url).suggestedWindow;
    return { window: { start: Date.parse(start), end: Date.parse(end) }, retryAfterMs: answer.retryAfterMs };
  }
}

export class AcmeAccount {
  readonly url: string;
  readonly #calls: SignedCalls;
  readonly #signer: Signer;
  readonly #thumbprint: string;

  constructor(calls: SignedCalls, url: string, signer: Signer, thumbprint: string) {
    this.#calls = calls;
    this.url = url;
    this.#signer = signer;
    this.#thumbprint = thumbprint;
  }

  /** Key authorization: proves that the responder to a challenge belongs to this account (RFC 8555, 8.1). */
  keyAuthorization(token: string): string {
    return `${token}.${this.#thumbprint}`;
  }

  async setEmail(email: string, bounds: CallBounds = {}): Promise<void> {
    await this.#post(this.url, { contact: email === '' ? [] : [`mailto:${email}`] }, bounds);
  }

  async newOrder(names: readonly string[], options: OrderOptions = {}, bounds: CallBounds = {}): Promise<AcmeOrder> {
    const { newOrder, meta, renewalInfo } = await this.#calls.directory(bounds);
    const { profile = '', replaces } = options;
    if (profile !== '' && meta.profiles?.[profile] === undefined) {
      const offered = Object.keys(meta.profiles ?? {}).join(', ') || 'none';
      throw new Fault('ACME_PROFILE', { profile, host: new URL(newOrder).host, offered });
    }
    const payload = {
      identifiers: names.map((value) => ({ type: 'dns', value })),
      ...(profile === '' ? {} : { profile }),
      // Sends `replaces` only to authorities with renewal information; others may reject the unknown field.
      ...(replaces === undefined || renewalInfo === undefined ? {} : { replaces }),
    };
    const answer = await this.#post(newOrder, payload, bounds);
    return orderOf(answer, locationOf(answer, newOrder));
  }

  async order(url: string, bounds: CallBounds = {}): Promise<AcmeOrder> {
    return orderOf(await this.#post(url, null, bounds), url);
  }

  async authorization(url: string, bounds: CallBounds = {}): Promise<AcmeAuthorization> {
    const answer = await this.#post(url, null, bounds);
    const { status, identifier, wildcard, challenges } = readAnswer(AUTHORIZATION, answer, url);
    const name = wildcard === true ? `*.${identifier.value}` : identifier.value;
    const { retryAfterMs } = answer;
    return { url, status, name, challenges: challenges.filter((one) => one !== null), retryAfterMs };
  }

  /** Tells the authority that the challenge can be validated. */
  async challengeReady({ url }: AcmeChallenge, bounds: CallBounds = {}): Promise<void> {
    await this.#post(url, {}, bounds);
  }

  async finalize({ finalize, url }: AcmeOrder, csr: Buffer, bounds: CallBounds = {}): Promise<AcmeOrder> {
    return orderOf(await this.#post(finalize, { csr: csr.toString('base64url') }, bounds), url);
  }

  /** Downloads an issued certificate chain in PEM, leaf first. */
  async certificate(url: string, bounds: CallBounds = {}): Promise<string> {
    return (await this.#post(url, null, { ...bounds, maxBytes: CHAIN_MAX_BYTES })).text;
  }

  #post(url: string, payload: object | null, bounds: CallBounds): Promise<AcmeAnswer> {
    return this.#calls.post(url, payload, this.#signer, bounds);
  }
}

export const newAccountKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return exportJWK(privateKey);
};

/** Returns true if the authority does not know the account of the URL. */
export const isUnknownAccount = (error: unknown): boolean =>
  error instanceof AcmeProblem && error.type === 'accountDoesNotExist';

const publicPart = ({ kty, crv, x, y }: JWK): JWK => ({ kty, crv, x, y }) as JWK;

const bindingOf = (eab: { kid: string; hmacKey: string }, jwk: JWK, url: string): Promise<object> =>
  new FlattenedSign(Buffer.from(JSON.stringify(jwk)))
    .setProtectedHeader({ alg: 'HS256', kid: eab.kid, url })
    .sign(Buffer.from(eab.hmacKey, 'base64url'));

const locationOf = ({ headers }: AcmeAnswer, url: string): string => {
  const { location } = headers;
  if (location === undefined || !URL.canParse(location)) throw badAnswer(url, 'no Location');
  return location;
};

const orderOf = (answer: AcmeAnswer, url: string): AcmeOrder => {
  const order = readAnswer(ORDER, answer, url);
  const expiresAt = Date.parse(order.expires ?? '');
  return { ...order, url, expiresAt: Number.isNaN(expiresAt) ? null : expiresAt, retryAfterMs: answer.retryAfterMs };
};
