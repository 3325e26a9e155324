// Signed calls of an account: directory, nonces, JWS. A call with a rejected nonce is repeated with the nonce from the response.
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { type CryptoKey, FlattenedSign, type JWK } from 'jose';
import { z } from 'zod';
import { type AcmeAnswer, type AcmeHttp, badAnswer, type CallBounds, readAnswer, throwProblem } from './acme-http.ts';
import { AcmeProblem } from './acme-problem.ts';

/** Maximum number of ACME nonces kept for the next calls; more are dropped. */
const NONCES_KEPT_MAX = 16;
/** Maximum repetitions of an ACME call because the authority rejected the nonce. */
const BAD_NONCE_TRIES = 5;
/** Time until the authority's directory (list of its URLs) is fetched again. */
const DIRECTORY_LIFE_MS = 3_600_000;

const DIRECTORY = z.object({
  newNonce: z.url(),
  newAccount: z.url(),
  newOrder: z.url(),
  renewalInfo: z.url().optional(),
  meta: z
    .object({
      termsOfService: z.string().optional(),
      externalAccountRequired: z.boolean().optional(),
      profiles: z.record(z.string(), z.string()).optional(),
    })
    .default({}),
});

export type AcmeDirectory = z.infer<typeof DIRECTORY>;

export interface Signer {
  readonly key: CryptoKey;
  /** Identifies the caller: the account's URL, or its key before the account exists. */
  readonly by: { readonly kid: string } | { readonly jwk: JWK };
}

export class SignedCalls {
  readonly #url: string;
  readonly #http: AcmeHttp;
  readonly #clock: Clock;
  readonly #nonces: string[] = [];
  #directory: { readonly value: AcmeDirectory; readonly readAt: number } | undefined;

  constructor(directoryUrl: string, http: AcmeHttp, clock: Clock) {
    this.#url = directoryUrl;
    this.#http = http;
    this.#clock = clock;
  }

  async directory(bounds: CallBounds = {}): Promise<AcmeDirectory> {
    const known = this.#directory;
    const now = this.#clock.monotonic();
    if (known !== undefined && now - known.readAt < DIRECTORY_LIFE_MS) return known.value;
    const value = readAnswer(DIRECTORY, await this.get(this.#url, bounds), this.#url);
    this.#directory = { value, readAt: now };
    return value;
  }

  /** Makes an unsigned call to the authority, for data that is public: directory and renewal information. */
  async get(url: string, bounds: CallBounds): Promise<AcmeAnswer> {
    const answer = await this.#http(this.#checked(url), null, bounds);
    throwProblem(answer);
    return answer;
  }

  /** Makes a signed call to the authority. `payload` null sends a POST-as-GET. */
  async post(url: string, payload: object | null, signer: Signer, bounds: CallBounds = {}): Promise<AcmeAnswer> {
    for (let tries = 0; ; tries += 1) {
      const nonce = this.#nonces.pop() ?? (await this.#newNonce(bounds));
      const answer = await this.#http(this.#checked(url), await this.#sign(url, payload, signer, nonce), bounds);
      this.#keepNonce(answer);
      try {
        throwProblem(answer);
        return answer;
      } catch (error) {
        const isNonce = error instanceof AcmeProblem && error.type === 'badNonce';
        if (!isNonce || tries >= BAD_NONCE_TRIES) throw error;
      }
    }
  }

  async #sign(url: string, payload: object | null, signer: Signer, nonce: string): Promise<string> {
    const text = payload === null ? '' : JSON.stringify(payload);
    const jws = await new FlattenedSign(Buffer.from(text))
      .setProtectedHeader({ alg: 'ES256', nonce, url, ...signer.by })
      .sign(signer.key);
    return JSON.stringify(jws);
  }

  async #newNonce(bounds: CallBounds): Promise<string> {
    const { newNonce } = await this.directory(bounds);
    this.#keepNonce(await this.get(newNonce, bounds));
    const nonce = this.#nonces.pop();
    if (nonce === undefined) throw badAnswer(newNonce, 'no Replay-Nonce');
    return nonce;
  }

  /** Keeps the nonce of a response. The newest nonce is used first, because nonces expire. */
  #keepNonce({ headers }: AcmeAnswer): void {
    const nonce = headers['replay-nonce'];
    if (typeof nonce !== 'string' || !/^[\w-]{1,512}$/.test(nonce)) return;
    this.#nonces.push(nonce);
    if (this.#nonces.length > NONCES_KEPT_MAX) this.#nonces.shift();
  }

  /** Checks a URL from the authority. Rejects URLs without TLS if the directory uses TLS. */
  #checked(url: string): string {
    const scheme = URL.canParse(url) ? new URL(url).protocol : null;
    if (scheme === 'https:' || (scheme === 'http:' && this.#url.startsWith('http:'))) return url;
    throw new Fault('ACME_BAD_ANSWER', {
      host: new URL(this.#url).host,
      reason: `unexpected redirect to ${url.slice(0, 100)}`,
    });
  }
}
