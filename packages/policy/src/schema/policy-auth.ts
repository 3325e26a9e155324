// Schemas of authentication in both dialects: the methods of `auth`, and the login provider.

import { RULE_LIMITS } from '@tunnel/rules/limits';
import * as z from 'zod';
import { POLICY_BOUNDS } from '../limits.ts';
import { POLICY_PEOPLE_MAX, POLICY_TOKENS_MAX, POLICY_USERS_MAX } from './limits.ts';
import {
  atMost,
  type Dialect,
  fileName,
  headerName,
  isChangeableHeader,
  isTable,
  judgedInTurn,
  list,
  origin,
  POLICY_LIST_MAX,
  printable,
  refuseBoth,
  table,
  text,
  url,
  utf8Length,
  wholeNumber,
} from './policy-values.ts';

/** Maximum length of a rule's name, which appears in trace lines. */
export const POLICY_RULE_NAME_MAX_CHARS = 60;
/** Minimum session lifetime. Shorter sessions would send visitors to the provider again and again. */
const POLICY_SESSION_MIN_SECS = 60;
/**
 * Maximum session lifetime: 30 days, because single sessions cannot be revoked.
 * @limit policies: Sign-in session, maximum lifetime a rule can set | `POLICY_INVALID`
 */
const POLICY_SESSION_MAX_SECS = 30 * 86_400;
/**
 * Default session lifetime: a working day.
 * @limit policies: Sign-in session, default lifetime | the visitor is sent to sign in
 */
const POLICY_SESSION_DEFAULT_SECS = 8 * 3600;

const NAME_MAX = POLICY_RULE_NAME_MAX_CHARS;

/** Schema of a rule's authentication methods. Any of the given methods suffices. */
export const authSchema = (dialect: Dialect): z.ZodType =>
  table({
    basic: basic(dialect).optional(),
    tokens: tokens(dialect).optional(),
    token_header: tokenHeader().default(TOKEN_HEADER),
    jwt: jwt(dialect).optional(),
    login: loginRule(dialect).optional(),
  }).refine((auth) => METHODS.some((name) => auth[name] !== undefined), {
    error: `a table with one of ${METHODS.join(', ')}`,
  });

const METHODS = ['basic', 'tokens', 'jwt', 'login'] as const;

// ---- passwords ----

/** The only password hash that the edge accepts: fixed cost, 16 bytes of salt and 32 bytes of hash in base64 without padding. */
const SCRYPT_LINE = /^\$scrypt\$ln=14,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/;

const USERS = 'a table of users and passwords';
const isUser = (name: string): boolean => /^[^:\p{C}\p{Zl}\p{Zp}]{1,100}$/u.test(name);

const password = (dialect: Dialect): z.ZodString => {
  if (dialect === 'wire') {
    const error = 'a line $scrypt$ln=14,r=8,p=1$salt$hash';
    return z.string({ error }).regex(SCRYPT_LINE, { error });
  }
  const max = RULE_LIMITS.PASSWORD_MAX_BYTES;
  const error = `a password in quotes, of 1 to ${max} bytes, or a line of \`tunnel policy hash\``;
  const isGood = (value: string): boolean =>
    value.startsWith('$scrypt$') ? SCRYPT_LINE.test(value) : value !== '' && utf8Length(value) <= max;
  return z.string({ error }).refine(isGood, { error });
};

const users = (dialect: Dialect): z.ZodType<Readonly<Record<string, string>>> => {
  const max = POLICY_USERS_MAX;
  const named = z
    .record(z.string(), password(dialect), { error: USERS })
    .refine((names) => Object.keys(names).length > 0, { error: 'a table with at least one user' });
  const judged = z.preprocess((written, context) => {
    // The error message does not repeat an invalid user name, because it could be `name:password`.
    if (isTable(written) && !Object.keys(written).every(isUser)) {
      context.addIssue({
        code: 'custom',
        message: `${USERS} (a user name needs 1 to 100 printable characters, without a colon)`,
      });
    }
    return written;
  }, named);
  return atMost(judged, max, 'users') as never;
};

/** Schema of a password realm, which is quoted in a header field. */
const realm = (): z.ZodString =>
  text('1 to 60 visible ASCII characters and spaces, without quotes', (value) =>
    /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,60}$/.test(value),
  );

const basic = (dialect: Dialect): z.ZodType => {
  if (dialect === 'wire') return table({ realm: realm().default('tunnel'), users: users(dialect) });
  return table({
    realm: realm().default('tunnel'),
    users: users(dialect).optional(),
    users_file: fileName().optional(),
  }).refine((given) => given.users !== undefined || given.users_file !== undefined, {
    error: 'a table with `users` or `users_file`',
  });
};

// ---- tokens ----

const TOKEN_HEADER = 'x-tunnel-token';

/** Schema of the header field that carries a token. Rejects names that already have a meaning. */
const tokenHeader = (): z.ZodType<string> =>
  headerName().refine(
    (name) =>
      name === TOKEN_HEADER || (isChangeableHeader(name) && !['authorization', 'cookie', 'origin'].includes(name)),
    { error: 'a custom header, such as X-Api-Key' },
  );

const sha256 = (): z.ZodType<string> =>
  text('64 hex digits', (value) => /^[0-9a-f]{64}$/i.test(value)).transform((value) => value.toLowerCase());

const plainToken = (): z.ZodString => {
  const { POLICY_TOKEN_MIN_CHARS: min, POLICY_TOKEN_MAX_CHARS: max } = POLICY_BOUNDS;
  const isGood = (value: string): boolean => /^[!-~]+$/.test(value) && value.length >= min && value.length <= max;
  return text(`a token of ${min} to ${max} visible ASCII characters`, isGood);
};

const GIVEN_AS = ['token', 'token_file', 'token_env', 'sha256'] as const;

const token = (dialect: Dialect): z.ZodType => {
  if (dialect === 'wire') return table({ name: printable(NAME_MAX), sha256: sha256() });
  return table({
    name: printable(NAME_MAX),
    token: plainToken().optional(),
    token_file: fileName().optional(),
    token_env: variableName().optional(),
    sha256: sha256().optional(),
  }).superRefine((given, context) => {
    if (GIVEN_AS.every((name) => given[name] === undefined)) {
      context.addIssue({ code: 'custom', message: `a table with one of ${GIVEN_AS.join(', ')}` });
    }
    refuseBoth(given, GIVEN_AS, context);
  });
};

const tokens = (dialect: Dialect): z.ZodType =>
  list(dialect, token(dialect), {
    what: dialect === 'wire' ? 'a table with `name` and `sha256`' : 'a table with `name` and a token',
    max: POLICY_TOKENS_MAX,
  });

export const variableName = (): z.ZodString =>
  text('the name of an environment variable', (value) => /^[^=\s\0]+$/.test(value), 200);

// ---- claims, JWT, login ----

const claims = (dialect: Dialect): z.ZodType<Readonly<Record<string, readonly string[]>>> => {
  const value = text('a text', (claim) => claim !== '', 500);
  // YAML parses `admin: true` as a boolean, but claims are compared as strings.
  const written = z.preprocess(
    (given) => (typeof given === 'number' || typeof given === 'boolean' ? String(given) : given),
    value,
  ) as unknown as z.ZodType<string>;
  const item = dialect === 'file' ? written : value;
  const named = z
    .record(z.string().min(1).max(200), list(dialect, item, { what: 'a text' }), {
      error: (issue) => (issue.code === 'invalid_key' ? 'the name of a claim' : 'a table of claims'),
    })
    .refine((given) => Object.keys(given).length > 0, { error: 'a table with at least one claim' });
  return atMost(named, 20, 'claims') as never;
};

const jwt = (dialect: Dialect): z.ZodType =>
  table({
    issuer: url(),
    audience: list(
      dialect,
      text('a text', (value) => value !== ''),
      { what: 'a text', max: 20 },
    ),
    jwks_url: url().optional(),
    claims: claims(dialect).optional(),
  });

const EMAIL = /^[^\s@\p{C}]+(?:@[^\s@\p{C}]+)*@[^\s@\p{C}]+$/u;
const DOMAIN = /^[\p{L}\p{N}](?:[\p{L}\p{N}.-]*[\p{L}\p{N}])?$/u;

const lowerCase = (value: string): string => value.toLowerCase();

const loginRule = (dialect: Dialect): z.ZodType => {
  const max = POLICY_PEOPLE_MAX;
  const email = text('an email address', (value) => EMAIL.test(value), RULE_LIMITS.EMAIL_MAX_CHARS);
  const domain = text('a whole domain, such as example.com', (value) => DOMAIN.test(value), 253);
  return table({
    anyone: z.literal(true, { error: 'true' }).optional(),
    emails: list(dialect, email.transform(lowerCase), { what: 'an email address', max }).optional(),
    domains: list(dialect, domain.transform(lowerCase), { what: 'a domain', max }).optional(),
    claims: claims(dialect).optional(),
  }).superRefine((rule, context) => {
    const { anyone, emails, domains } = rule;
    const isLimited = emails !== undefined || domains !== undefined || rule.claims !== undefined;
    if (anyone === undefined && !isLimited) {
      context.addIssue({
        code: 'custom',
        message: 'a table with `emails`, `domains` or `claims`, or with `anyone: true`',
      });
    }
    if (anyone === true && isLimited) {
      context.addIssue({
        code: 'custom',
        path: ['anyone'],
        message: 'left out beside `emails`, `domains` and `claims`',
      });
    }
  });
};

// ---- the provider ----

const SCOPES = ['openid', 'email', 'profile'] as const;
const OF_OWN_PROVIDER = ['issuer', 'client_id', 'client_secret', 'client_secret_file', 'client_secret_env', 'scopes'];

const scopes = (dialect: Dialect): z.ZodType<readonly string[]> =>
  list(
    dialect,
    text('a scope', (value) => /^[!#-[\]-~]+$/.test(value), 200),
    { what: 'a scope', max: 20 },
  ).refine((names) => names.includes('openid'), { error: 'a list with `openid`' });

/** A provider configured by the operator, by name, or a provider configured for the tunnel. */
export const loginSchema = (dialect: Dialect): z.ZodType => {
  const secret = text('a text that is not empty', (value) => value !== '');
  return table({
    provider: printable(NAME_MAX).optional(),
    issuer: url().optional(),
    client_id: text('a text that is not empty', (value) => value !== '', 500).optional(),
    client_secret: secret.optional(),
    ...(dialect === 'file' && {
      client_secret_file: fileName().optional(),
      client_secret_env: variableName().optional(),
    }),
    scopes: scopes(dialect).optional(),
    session_secs: wholeNumber(POLICY_SESSION_MIN_SECS, POLICY_SESSION_MAX_SECS).default(POLICY_SESSION_DEFAULT_SECS),
    trusted_origins: trustedOrigins(dialect),
  })
    .superRefine((login, context) => {
      const given: Readonly<Record<string, unknown>> = login;
      if (login.provider === undefined) {
        if (login.issuer === undefined) {
          context.addIssue({ code: 'custom', message: 'a table with `provider`, or with `issuer` and `client_id`' });
        } else if (login.client_id === undefined) {
          context.addIssue({ code: 'custom', path: ['client_id'], message: 'given beside `issuer`' });
        }
        return refuseBoth(login, ['client_secret', 'client_secret_file', 'client_secret_env'], context);
      }
      const own = OF_OWN_PROVIDER.find((name) => given[name] !== undefined);
      if (own === undefined) return;
      context.addIssue({ code: 'custom', path: [own], message: 'left out when `provider` is given' });
    })
    .transform((login) => (login.provider === undefined ? { ...login, scopes: login.scopes ?? [...SCOPES] } : login));
};

/** Origins that may use the login cookie. An empty list is allowed, as it is the default. */
const trustedOrigins = (dialect: Dialect): z.ZodType<readonly string[]> => {
  const error = 'a list of origins, such as https://app.example.com';
  const max = POLICY_LIST_MAX;
  if (dialect === 'wire')
    return judgedInTurn(z.array(z.unknown(), { error }).max(max, { error }), origin()).default([]);
  const origins = z.array(origin(), { error }).max(max, { error });
  const written = z.preprocess((value) => (typeof value === 'string' ? [value] : value), origins);
  return written.default([]) as never;
};
