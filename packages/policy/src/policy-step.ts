// Messages between the rule evaluator and its driver: a request goes in, steps come out, and the driver answers effects with events. No
// sockets, no clocks.
import type { Fault } from '@tunnel/errors';
import type { EdgeResponse, HeaderField } from '@tunnel/http1';
import type { ActionName, BasicAuth, JwtAuth, LoginProvider } from './policy.ts';

/** A visitor's request as rules see it, without the raw head. */
export interface PolicyRequest {
  readonly method: string;
  /** Path of the request as received, with its query. */
  readonly path: string;
  readonly headers: readonly HeaderField[];
  /** Host name of the request in lower case, without port. */
  readonly host: string;
  /** `host[:port]` as sent by the visitor. Together with the scheme it is the tunnel's origin. */
  readonly authority: string;
  readonly scheme: 'http' | 'https';
  /** The visitor's address. IPv4-mapped addresses are written as IPv4. */
  readonly address: string;
  readonly isUpgrade: boolean;
  /** Length of the body in bytes: 0 without a body, null if unknown until the end. */
  readonly bodyLength: number | null;
  readonly requestId: string;
}

/** Reference to a rule by its list and its number, counted from 1. */
export interface RuleRef {
  readonly list: 'operator' | 'tunnel';
  readonly index: number;
  readonly name: string | null;
  readonly action: ActionName;
}

export type AuthMethod = 'basic' | 'token' | 'jwt' | 'login';

export interface Identity {
  /** The authenticated user: e-mail address, user name, token name or `sub`. */
  readonly user: string;
  readonly method: AuthMethod;
}

/** Signed-in visitor: content of a decrypted login cookie. */
export interface LoggedIn {
  readonly sub: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  /** Claims of the visitor's session, limited to those named in rules. */
  readonly claims: Readonly<Record<string, readonly string[]>>;
  /** When the visitor's session expires, as Unix time in seconds. */
  readonly expiresAt: number;
}

// ---- effects and events ----

export type PolicyEffect =
  | {
      readonly kind: 'check-password';
      readonly auth: BasicAuth;
      readonly user: string;
      readonly password: string;
      /** Hash of the user's password. Null for an unknown user; the check takes the same time. */
      readonly hash: string | null;
    }
  | { readonly kind: 'verify-jwt'; readonly auth: JwtAuth; readonly token: string }
  /** Decrypt the login cookie. `sealed`: values of the login cookies as received. */
  | { readonly kind: 'open-cookie'; readonly login: LoginProvider; readonly sealed: readonly string[] }
  /** Redirect the visitor to the sign-in provider, because an unauthenticated visitor opened a page. */
  | { readonly kind: 'begin-login'; readonly login: LoginProvider; readonly returnPath: string }
  /** Complete the sign-in: the visitor requested `/.tunnel/callback`. `query` includes the `?`. */
  | {
      readonly kind: 'finish-login';
      readonly login: LoginProvider;
      readonly query: string;
      /** Cookies of pending sign-ins, by the 8 hex digits of the cookie name. */
      readonly pending: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'hold-body'; readonly maxBytes: number }
  | {
      readonly kind: 'take-token';
      /** Selects the rate limiter: each rule of a compiled policy has its limiter. */
      readonly rule: RuleRef;
      readonly key: string;
      readonly requests: number;
      readonly perSecs: number;
      readonly burst: number;
    };

/** Results of effects. `failed`: the fault is the response (busy, provider unreachable, too many failed attempts). */
export type PolicyEvent =
  | { readonly kind: 'password-checked'; readonly isRight: boolean }
  /** `claims` is null if the token is invalid, or not from this issuer for this audience. */
  | { readonly kind: 'jwt-verified'; readonly claims: Readonly<Record<string, unknown>> | null }
  /** The login cookie was decrypted. `session` is null if no cookie decrypts. */
  | { readonly kind: 'cookie-opened'; readonly session: LoggedIn | null }
  | { readonly kind: 'login-begun'; readonly location: string; readonly setCookies: readonly string[] }
  | { readonly kind: 'login-finished'; readonly returnPath: string; readonly setCookies: readonly string[] }
  /** The complete request body, which is small for webhooks. */
  | { readonly kind: 'body-held'; readonly body: Uint8Array }
  | { readonly kind: 'body-too-large' }
  | { readonly kind: 'token-taken'; readonly retryAfterSecs: number | null }
  | { readonly kind: 'failed'; readonly fault: Fault; readonly retryAfterSecs?: number | undefined };

// ---- results ----

/** Changes that rules make to a request. Null fields stay as received. */
export interface RequestChanges {
  /** New path of the request with its query. */
  readonly path: string | null;
  readonly service: string | null;
  /** Header fields to remove, in lower case. `_` and `-` differ; every occurrence is removed. */
  readonly remove: readonly string[];
  /** Names of visitor fields to remove in any spelling with `-` or `_`. */
  readonly removeSpellings: readonly string[];
  /** Cookie value without edge cookies. '' removes the field, null leaves it untouched. */
  readonly cookie: string | null;
  /** Fields that replace every field of the same name and are appended. The `Connection` field cannot remove them. */
  readonly set: readonly HeaderPair[];
  readonly add: readonly HeaderPair[];
  /** Maximum size of the body in bytes, or null for no limit. */
  readonly maxBody: number | null;
}

export type HeaderPair = readonly [name: string, value: string];

/** Changes that a rule requests for the later response, applied in rule order. */
export type ResponseEdit =
  | {
      readonly kind: 'headers';
      readonly set: readonly HeaderPair[];
      readonly add: readonly HeaderPair[];
      readonly remove: readonly string[];
    }
  /** Edit that replaces the service's CORS fields with `fields` and adds `Vary: Origin`. */
  | { readonly kind: 'cors'; readonly fields: readonly HeaderPair[] }
  /** Edit that replaces the edge's HTML page for 502, 503 and 504 with the tunnel's page. */
  | { readonly kind: 'error-page'; readonly body: string }
  /**
   * For a visitor with a login cookie. `private` adds `Cache-Control: private` unless the response has Cache-Control; `guard-cookies` drops
   * Set-Cookie fields that use an edge cookie name.
   */
  | { readonly kind: 'private' }
  | { readonly kind: 'guard-cookies' };

/** Response of a rule: an error page of the catalogue, or content written by the owner. */
export type PolicyAnswer =
  | {
      readonly kind: 'fault';
      readonly fault: Fault;
      readonly status: number;
      readonly headers: readonly HeaderPair[];
      readonly retryAfterSecs?: number | undefined;
    }
  | { readonly kind: 'own'; readonly response: EdgeResponse };

export interface Pass {
  readonly kind: 'pass';
  /** Changes to the request by rules. Null if the request stays as received. */
  readonly changes: RequestChanges | null;
  readonly edits: readonly ResponseEdit[];
  readonly matched: readonly RuleRef[];
  readonly identity: Identity | null;
  /** Body of a verified webhook, to be forwarded before the rest. Null if no body was buffered. */
  readonly heldBody: Uint8Array | null;
}

export interface Answer {
  readonly kind: 'answer';
  readonly answer: PolicyAnswer;
  /** The rule that answered the request. Null for the edge's sign-in paths. */
  readonly rule: RuleRef | null;
  readonly edits: readonly ResponseEdit[];
  readonly matched: readonly RuleRef[];
  readonly identity: Identity | null;
}

export interface EffectStep {
  readonly kind: 'effect';
  readonly effect: PolicyEffect;
  /** Opaque state of the suspended evaluation, to pass to `resume`. */
  readonly state: PolicyState;
}

export type PolicyStep = Pass | Answer | EffectStep;

/** A suspended evaluation of a policy. Only the evaluator looks inside. */
export interface PolicyState {
  readonly waiting: PolicyEffect['kind'];
}

/** Synchronous cryptography passed in by the caller, because this package does not import Node. */
export interface PolicyDigests {
  /** Returns the SHA-256 digest of the UTF-8 text in lower-case hex. */
  sha256Hex(text: string): string;
  hmac(algorithm: 'sha1' | 'sha256' | 'sha512', key: Uint8Array, parts: readonly Uint8Array[]): Uint8Array;
  /** Compares two digests in constant time. Returns false for different lengths. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
}
