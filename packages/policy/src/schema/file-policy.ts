// A policy as people write it in a file or program: secrets by value, file or variable; single values in place of lists; defaults omitted.
import type { Actions, WEBHOOK_PROVIDERS } from '../policy.ts';

/** A list of rules, or a table with rules and their login provider. */
export type FilePolicy = readonly FileRule[] | FilePolicyTable;

export interface FilePolicyTable {
  readonly login?: FileLogin | null | undefined;
  readonly rules: readonly FileRule[];
}

/** Policy read from a file by `filePolicySchema`: lists expanded, names in lower case, sizes in bytes. */
export interface ReadPolicy {
  readonly login: FileLogin | null;
  readonly rules: readonly FileRule[];
}

type OneOrMore<T> = T | readonly T[];

interface LoginSettings {
  /** Lifetime of a visitor's session in seconds: 60 to 2592000, default 28800. */
  readonly session_secs?: number | undefined;
  readonly trusted_origins?: OneOrMore<string> | undefined;
}

/** Sign-in provider: one configured by the operator, by name, or a custom provider. */
export type FileLogin = LoginSettings &
  (
    | { readonly provider: string }
    | {
        readonly issuer: string;
        readonly client_id: string;
        readonly client_secret?: string | undefined;
        readonly client_secret_file?: string | undefined;
        readonly client_secret_env?: string | undefined;
        readonly scopes?: OneOrMore<string> | undefined;
      }
  );

export interface FileMatch {
  readonly method?: OneOrMore<string> | undefined;
  readonly path?: OneOrMore<string> | undefined;
  readonly header?: Readonly<Record<string, boolean | OneOrMore<string>>> | undefined;
  readonly address?: OneOrMore<string> | undefined;
  readonly not?: FileMatch | undefined;
}

type FileClaims = Readonly<Record<string, OneOrMore<string | number | boolean>>>;

export interface FileToken {
  readonly name: string;
  readonly token?: string | undefined;
  readonly token_file?: string | undefined;
  readonly token_env?: string | undefined;
  readonly sha256?: string | undefined;
}

export interface FileAuth {
  readonly basic?:
    | {
        readonly realm?: string | undefined;
        /** Passwords, or lines from `tunnel policy hash`, by user name. */
        readonly users?: Readonly<Record<string, string>> | undefined;
        readonly users_file?: string | undefined;
      }
    | undefined;
  readonly tokens?: OneOrMore<FileToken> | undefined;
  readonly token_header?: string | undefined;
  readonly jwt?:
    | {
        readonly issuer: string;
        readonly audience: OneOrMore<string>;
        readonly jwks_url?: string | undefined;
        readonly claims?: FileClaims | undefined;
      }
    | undefined;
  readonly login?:
    | {
        readonly anyone?: true | undefined;
        readonly emails?: OneOrMore<string> | undefined;
        readonly domains?: OneOrMore<string> | undefined;
        readonly claims?: FileClaims | undefined;
      }
    | undefined;
}

export interface FileWebhook {
  readonly provider: (typeof WEBHOOK_PROVIDERS)[number];
  readonly secret?: string | undefined;
  readonly secret_file?: string | undefined;
  readonly secret_env?: string | undefined;
  readonly secrets?: OneOrMore<string> | undefined;
  /** Maximum size of a webhook body: bytes, or a size such as `1MiB`. */
  readonly max_bytes?: number | string | undefined;
  readonly header?: string | undefined;
  readonly algorithm?: 'sha256' | 'sha1' | 'sha512' | undefined;
  readonly encoding?: 'hex' | 'base64' | undefined;
  readonly prefix?: string | undefined;
}

interface FileHeaderChanges {
  readonly set?: Readonly<Record<string, string>> | undefined;
  readonly add?: Readonly<Record<string, string>> | undefined;
  readonly remove?: OneOrMore<string> | undefined;
}

interface FileActions extends Pick<Actions, 'allow' | 'rewrite' | 'route'> {
  readonly deny: true | number;
  readonly allow_addresses: OneOrMore<string>;
  readonly auth: FileAuth;
  readonly verify_webhook: FileWebhook;
  readonly rate_limit: {
    readonly requests: number;
    readonly per_secs: number;
    readonly burst?: number | undefined;
    readonly by?: string | undefined;
  };
  /** Maximum size of a request body: bytes, or a size such as `10MiB`. */
  readonly max_body: number | string;
  readonly redirect: { readonly to: string; readonly status?: number | undefined };
  readonly respond: {
    readonly status: number;
    readonly body?: string | undefined;
    readonly body_file?: string | undefined;
    readonly content_type?: string | undefined;
    readonly headers?: Readonly<Record<string, string>> | undefined;
  };
  readonly request_headers: FileHeaderChanges;
  readonly response_headers: FileHeaderChanges;
  readonly cors: {
    readonly origins: OneOrMore<string>;
    readonly methods?: OneOrMore<string> | undefined;
    readonly headers?: OneOrMore<string> | undefined;
    readonly expose?: OneOrMore<string> | undefined;
    readonly credentials?: boolean | undefined;
    readonly max_age_secs?: number | undefined;
  };
  readonly error_page: { readonly body?: string | undefined; readonly body_file?: string | undefined };
}

interface FileRuleBase {
  readonly name?: string | undefined;
  readonly match?: FileMatch | undefined;
}

/** Policy rule in a file, with exactly one action. */
export type FileRule = {
  [A in keyof FileActions]: FileRuleBase & { readonly [K in A]: FileActions[A] };
}[keyof FileActions];
