// Reads a signed ACME request (RFC 8555, 6). Every rule is checked, so that tests detect any violation by a client.
import { type FlattenedJWSInput, flattenedVerify, importJWK, type JWK } from 'jose';

export class Refusal extends Error {
  readonly type: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, type: string, detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail);
    this.type = type;
    this.status = status;
    this.headers = headers;
  }
}

export interface SignedCall {
  /** Payload of the request. Undefined for a read (POST-as-GET). */
  readonly payload: Record<string, unknown> | undefined;
  /** Public key of the client, in requests without an account. Null otherwise. */
  readonly jwk: JWK | null;
  readonly kid: string | null;
}

interface Header {
  readonly alg?: string;
  readonly nonce?: string;
  readonly url?: string;
  readonly jwk?: JWK;
  readonly kid?: string;
}

export interface JwsRules {
  readonly url: string;
  /** Uses up a nonce. Returns true only for the first use of a nonce issued by the server. */
  useNonce(nonce: string): boolean;
  keyOf(kid: string): JWK | undefined;
}

export const readJws = async (contentType: string | undefined, body: string, rules: JwsRules): Promise<SignedCall> => {
  if (contentType !== 'application/jose+json')
    throw new Refusal(415, 'malformed', 'the content type is not application/jose+json');
  const jws = parse(body) as unknown as FlattenedJWSInput;
  const { alg, nonce, url, jwk, kid } = parse(Buffer.from(jws.protected ?? '', 'base64url').toString()) as Header;
  if (alg !== 'ES256') throw new Refusal(400, 'badSignatureAlgorithm', `alg ${alg}`);
  if (url !== rules.url) throw new Refusal(401, 'unauthorized', `the url in the header is ${url}`);
  if ((jwk === undefined) === (kid === undefined)) throw new Refusal(400, 'malformed', 'either jwk or kid');
  if (typeof nonce !== 'string' || !rules.useNonce(nonce)) throw new Refusal(400, 'badNonce', 'unknown nonce');
  const key = jwk ?? rules.keyOf(kid ?? '');
  if (key === undefined) throw new Refusal(400, 'accountDoesNotExist', 'no account has this kid');
  if ('d' in key) throw new Refusal(400, 'malformed', 'a private key was sent');
  const { payload } = await flattenedVerify(jws, await importJWK(key, 'ES256')).catch(() => {
    throw new Refusal(400, 'malformed', 'the signature is wrong');
  });
  const text = Buffer.from(payload).toString();
  return {
    payload: text === '' ? undefined : parse(text),
    jwk: jwk ?? null,
    kid: kid ?? null,
  };
};

const parse = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Invalid JSON is rejected below, like any value other than an object.
  }
  throw new Refusal(400, 'malformed', 'no JSON object');
};
