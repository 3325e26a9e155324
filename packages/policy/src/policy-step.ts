// What the rules and whoever drives them say to each other: a request comes in, steps come out, effects are answered by events. No sockets, no clocks.
import type { Fault } from '@tunnel/errors';
import type { EdgeResponse, HeaderField } from '@tunnel/http1';
import type { ActionName, BasicAuth, JwtAuth, LoginProvider } from './policy.ts';

/** A visitor's request as rules see it; nothing of it is a raw head. */
export interface PolicyRequest {
  readonly method: string;
  /** As it came, with its query. */
  readonly path: string;
  readonly headers: readonly HeaderField[];
  /** Lower case, without a port. */
  readonly host: string;
  /** `host[:port]` as the visitor names it: with the scheme, its own origin. */
  readonly authority: string;
  readonly scheme: 'http' | 'https';
  /** The visitor's, v4-mapped ones as v4. */
  readonly address: string;
  readonly isUpgrade: boolean;
  /** Of the body: 0 none, null not known before its end. */
  readonly bodyLength: number | null;
  readonly requestId: string;
}

/** Rules count from 1, as people do; `list` 0 is the operator's. */
export interface RuleRef {
  readonly list: 'operator' | 'tunnel';
  readonly index: number;
  readonly name: string | null;
  readonly action: ActionName;
}

export type AuthMethod = 'basic' | 'token' | 'jwt' | 'login';

export interface Identity {
  /** E-mail, user, name of a token, or `sub`. */
  readonly user: string;
  readonly method: AuthMethod;
}

/** What a login cookie holds once it is opened. */
export interface LoggedIn {
  readonly sub: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  /** Those that rules name: texts, or lists of texts. */
  readonly claims: Readonly<Record<string, readonly string[]>>;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

// ---- what must be found out first ----

export type PolicyEffect =
  | {
      readonly kind: 'check-password';
      readonly auth: BasicAuth;
      readonly user: string;
      readonly password: string;
      /** null: there is no such user, and the check takes as long all the same. */
      readonly hash: string | null;
    }
  | { readonly kind: 'verify-jwt'; readonly auth: JwtAuth; readonly token: string }
  /** Values of the cookies with the edge's login name, as they came. */
  | { readonly kind: 'open-cookie'; readonly login: LoginProvider; readonly sealed: readonly string[] }
  /** A navigation of somebody unknown: to the provider. */
  | { readonly kind: 'begin-login'; readonly login: LoginProvider; readonly returnPath: string }
  /** `/.tunnel/callback`, `query` with its `?`. */
  | {
      readonly kind: 'finish-login';
      readonly login: LoginProvider;
      readonly query: string;
      /** Of logins under way, by the 8 hex digits of their cookie's name. */
      readonly pending: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'hold-body'; readonly maxBytes: number }
  | {
      readonly kind: 'take-token';
      /** Names the table: one for each rule of a compiled policy. */
      readonly rule: RuleRef;
      readonly key: string;
      readonly requests: number;
      readonly perSecs: number;
      readonly burst: number;
    };

/** What came of an effect, in its order above. `failed`: the fault is the answer (busy, provider away, too many wrong ones). */
export type PolicyEvent =
  | { readonly kind: 'password-checked'; readonly isRight: boolean }
  /** null: not a good token of this issuer for this audience. */
  | { readonly kind: 'jwt-verified'; readonly claims: Readonly<Record<string, unknown>> | null }
  /** null: none of them opens. */
  | { readonly kind: 'cookie-opened'; readonly session: LoggedIn | null }
  | { readonly kind: 'login-begun'; readonly location: string; readonly setCookies: readonly string[] }
  | { readonly kind: 'login-finished'; readonly returnPath: string; readonly setCookies: readonly string[] }
  /** All of it; webhooks are small. */
  | { readonly kind: 'body-held'; readonly body: Uint8Array }
  | { readonly kind: 'body-too-large' }
  | { readonly kind: 'token-taken'; readonly retryAfterSecs: number | null }
  | { readonly kind: 'failed'; readonly fault: Fault; readonly retryAfterSecs?: number | undefined };

// ---- what comes out ----

/** null fields: as it came. */
export interface RequestChanges {
  /** With its query. */
  readonly path: string | null;
  readonly service: string | null;
  /** Names in lower case, `_` and `-` told apart; each occurrence goes. */
  readonly remove: readonly string[];
  /** Visitors' own of these go in any spelling with `-` or `_`. */
  readonly removeSpellings: readonly string[];
  /** Without the edge's own; '' removes the field whole; null: untouched. */
  readonly cookie: string | null;
  /** Replace each of their name, then follow the others; not subject to what `Connection` names. */
  readonly set: readonly HeaderPair[];
  readonly add: readonly HeaderPair[];
  /** Bytes that its body may have; null: no bound. */
  readonly maxBody: number | null;
}

export type HeaderPair = readonly [name: string, value: string];

/** One of them per rule, in their order: done to whatever answer comes. */
export type ResponseEdit =
  | {
      readonly kind: 'headers';
      readonly set: readonly HeaderPair[];
      readonly add: readonly HeaderPair[];
      readonly remove: readonly string[];
    }
  /** The service's own fields of CORS go, these come, and `Vary: Origin`. */
  | { readonly kind: 'cors'; readonly fields: readonly HeaderPair[] }
  /** Instead of the edge's own page for 502, 503, 504, to browsers. */
  | { readonly kind: 'error-page'; readonly body: string }
  /** Let in by a cookie: `private` unless it says itself; a Set-Cookie with one of the edge's names is dropped. */
  | { readonly kind: 'private' }
  | { readonly kind: 'guard-cookies' };

/** What a rule answers: a page of the catalogue, or the owner's own words. */
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
  /** null: as it came. */
  readonly changes: RequestChanges | null;
  readonly edits: readonly ResponseEdit[];
  readonly matched: readonly RuleRef[];
  readonly identity: Identity | null;
  /** Of a webhook that was verified: to be passed on in front of what follows; null: nothing was held. */
  readonly heldBody: Uint8Array | null;
}

export interface Answer {
  readonly kind: 'answer';
  readonly answer: PolicyAnswer;
  /** null: the edge's own paths of a login. */
  readonly rule: RuleRef | null;
  readonly edits: readonly ResponseEdit[];
  readonly matched: readonly RuleRef[];
  readonly identity: Identity | null;
}

export interface EffectStep {
  readonly kind: 'effect';
  readonly effect: PolicyEffect;
  /** Opaque: for `resume`. */
  readonly state: PolicyState;
}

export type PolicyStep = Pass | Answer | EffectStep;

/** A run of the rules that waits; only the evaluator looks inside. */
export interface PolicyState {
  readonly waiting: PolicyEffect['kind'];
}

/** Mathematics that a policy is handed, because this package imports nothing of Node. All of it synchronous. */
export interface PolicyDigests {
  /** Lower-case hex, of UTF-8. */
  sha256Hex(text: string): string;
  hmac(algorithm: 'sha1' | 'sha256' | 'sha512', key: Uint8Array, parts: readonly Uint8Array[]): Uint8Array;
  /** In constant time; false for different lengths. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
}
