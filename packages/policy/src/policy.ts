// A policy in its wire form, as the edge keeps it: one ordered list, one action per rule, defaults filled in. Passwords are scrypt lines,
// tokens SHA-256 digests.

export interface Policy {
  readonly login: LoginProvider | null;
  readonly rules: readonly Rule[];
}

export interface LoginSession {
  readonly session_secs: number;
  /** Further origins that may send requests with the login cookie, besides the tunnel's origin. */
  readonly trusted_origins: readonly string[];
}

/** A provider configured by the operator, by name, or a provider configured for the tunnel. */
export type LoginProvider = LoginSession &
  (
    | { readonly provider: string }
    | {
        readonly issuer: string;
        readonly client_id: string;
        readonly client_secret?: string | undefined;
        readonly scopes: readonly string[];
      }
  );

/** Conditions of a rule. Every field must match; entries of a list are alternatives. */
export interface Match {
  readonly method?: readonly string[] | undefined;
  /** Globs for the request path. A rule matches if any glob matches. */
  readonly path?: readonly string[] | undefined;
  /** Conditions on headers by lower-case name: whether the header is present, or globs for its value. */
  readonly header?: Readonly<Record<string, boolean | readonly string[]>> | undefined;
  /** Addresses and networks of visitors for which a rule matches. */
  readonly address?: readonly string[] | undefined;
  /** A nested condition that must not match. */
  readonly not?: Match | undefined;
}

export interface Claims {
  /** Accepted values of each claim of a JWT or session. Every listed claim must match. */
  readonly [claim: string]: readonly string[];
}

export interface BasicAuth {
  readonly realm: string;
  /** Password hashes by user name, in the form `$scrypt$ln=14,r=8,p=1$salt$hash`. */
  readonly users: Readonly<Record<string, string>>;
}

export interface TokenAuth {
  readonly name: string;
  /** SHA-256 digest of the token in lower-case hex. */
  readonly sha256: string;
}

export interface JwtAuth {
  readonly issuer: string;
  readonly audience: readonly string[];
  /** URL of the JWT key set. Undefined for discovery at the issuer. */
  readonly jwks_url?: string | undefined;
  readonly claims?: Claims | undefined;
}

/** People who may sign in: any match suffices, or `anyone`. */
export interface LoginAuth {
  readonly anyone?: true | undefined;
  readonly emails?: readonly string[] | undefined;
  readonly domains?: readonly string[] | undefined;
  readonly claims?: Claims | undefined;
}

/** Authentication methods that a rule accepts. Any of them suffices. */
export interface Auth {
  readonly basic?: BasicAuth | undefined;
  readonly tokens?: readonly TokenAuth[] | undefined;
  /** Name of the header field with the token, in lower case. */
  readonly token_header: string;
  readonly jwt?: JwtAuth | undefined;
  readonly login?: LoginAuth | undefined;
}

export const WEBHOOK_PROVIDERS = ['standard', 'stripe', 'github', 'slack', 'shopify', 'gitlab', 'hmac'] as const;

export interface VerifyWebhook {
  readonly provider: (typeof WEBHOOK_PROVIDERS)[number];
  readonly secrets: readonly string[];
  readonly max_bytes: number;
  /** `header`, `algorithm`, `encoding` and `prefix` of the webhook's signature are only for the provider `hmac`. */
  readonly header?: string | undefined;
  readonly algorithm?: 'sha256' | 'sha1' | 'sha512' | undefined;
  readonly encoding?: 'hex' | 'base64' | undefined;
  readonly prefix?: string | undefined;
}

export interface RateLimit {
  readonly requests: number;
  readonly per_secs: number;
  readonly burst: number;
  /** What a rate limit counts by: `address`, `user`, `tunnel`, or `header:NAME` with a lower-case name. */
  readonly by: string;
}

export interface HeaderChanges {
  readonly set?: Readonly<Record<string, string>> | undefined;
  readonly add?: Readonly<Record<string, string>> | undefined;
  readonly remove?: readonly string[] | undefined;
}

export interface Cors {
  readonly origins: readonly string[];
  readonly methods?: readonly string[] | undefined;
  readonly headers?: readonly string[] | undefined;
  readonly expose?: readonly string[] | undefined;
  readonly credentials: boolean;
  readonly max_age_secs: number;
}

/** Arguments of the actions, by their name in files and on the wire. */
export interface Actions {
  readonly allow: true;
  /** Status of the response to a denied request. */
  readonly deny: number;
  readonly allow_addresses: readonly string[];
  readonly auth: Auth;
  readonly verify_webhook: VerifyWebhook;
  readonly rate_limit: RateLimit;
  /** Maximum size of a request body in bytes. */
  readonly max_body: number;
  readonly redirect: { readonly to: string; readonly status: number };
  readonly respond: {
    readonly status: number;
    readonly body: string;
    readonly content_type: string;
    readonly headers?: Readonly<Record<string, string>> | undefined;
  };
  readonly rewrite: { readonly strip_prefix?: string | undefined; readonly add_prefix?: string | undefined };
  readonly route: string;
  readonly request_headers: HeaderChanges;
  readonly response_headers: HeaderChanges;
  readonly cors: Cors;
  readonly error_page: { readonly body: string };
}

export type ActionName = keyof Actions;

interface RuleBase {
  readonly name?: string | undefined;
  readonly match?: Match | undefined;
}

/** Policy rule with exactly one action. */
export type Rule = { [A in ActionName]: RuleBase & { readonly [K in A]: Actions[A] } }[ActionName];

export const ACTION_NAMES = [
  'allow',
  'deny',
  'allow_addresses',
  'auth',
  'verify_webhook',
  'rate_limit',
  'max_body',
  'redirect',
  'respond',
  'rewrite',
  'route',
  'request_headers',
  'response_headers',
  'cors',
  'error_page',
] as const satisfies readonly ActionName[];

export const actionOf = (rule: Rule): ActionName => {
  for (const name of ACTION_NAMES) if (name in rule) return name;
  throw new Error('a rule without an action: the schema refuses it');
};
