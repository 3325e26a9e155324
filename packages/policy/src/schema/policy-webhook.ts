// Schema of the action `verify_webhook` in files and on the wire: provider and secrets.

import type * as z from 'zod';
import { WEBHOOK_PROVIDERS } from '../policy.ts';
import { variableName } from './policy-auth.ts';
import { type Dialect, fileName, headerName, list, oneOf, refuseBoth, size, table, text } from './policy-values.ts';

/** Default maximum size of a webhook's body. */
const POLICY_WEBHOOK_DEFAULT_BYTES = 1024 * 1024;
/**
 * Largest size that a rule can allow. The body is buffered before the service gets a byte.
 * @limit policies: Webhook body with signature check, size | 413 `POLICY_BODY_TOO_LARGE`
 */
export const POLICY_WEBHOOK_MAX_BYTES = 4 * 1024 * 1024;
/** Maximum secrets of a webhook: the current secret and its predecessors. */
const POLICY_WEBHOOK_SECRETS_MAX = 10;

/** Options of `hmac` only. The values of named providers are built in. */
const OF_HMAC = ['header', 'algorithm', 'encoding', 'prefix'] as const;
const GIVEN_AS = ['secret', 'secret_file', 'secret_env', 'secrets'] as const;

const STANDARD = 'the secret as shown by the sender: whsec_ followed by base64';
const isStandardSecret = (secret: string): boolean => /^(?:whsec_)?[A-Za-z0-9+/]{4,}={0,2}$/.test(secret);

const secret = (): z.ZodString => text('a text that is not empty', (value) => value !== '', 1024);

export const verifyWebhookSchema = (dialect: Dialect): z.ZodType => {
  const secrets = list(dialect, secret(), {
    what: 'a text that is not empty',
    max: POLICY_WEBHOOK_SECRETS_MAX,
  });
  const common = {
    provider: oneOf(WEBHOOK_PROVIDERS),
    max_bytes: size(dialect, 1, POLICY_WEBHOOK_MAX_BYTES).default(POLICY_WEBHOOK_DEFAULT_BYTES),
    header: headerName().optional(),
    algorithm: oneOf(['sha256', 'sha1', 'sha512']).optional(),
    encoding: oneOf(['hex', 'base64']).optional(),
    prefix: text('up to 40 visible ASCII characters', (value) => /^[!-~]*$/.test(value), 40).optional(),
  };
  const written =
    dialect === 'wire'
      ? table({ ...common, secrets })
      : table({
          ...common,
          secret: secret().optional(),
          secret_file: fileName().optional(),
          secret_env: variableName().optional(),
          secrets: secrets.optional(),
        });
  return written.superRefine(check).transform(filled);
};

interface Written {
  readonly provider: string;
  readonly header?: string | undefined;
  readonly algorithm?: string | undefined;
  readonly encoding?: string | undefined;
  readonly prefix?: string | undefined;
  readonly secret?: string | undefined;
  readonly secrets?: readonly string[] | undefined;
}

const check = (value: object, context: z.core.$RefinementCtx): void => {
  const given = value as Written & Readonly<Record<string, unknown>>;
  if (GIVEN_AS.every((name) => given[name] === undefined)) {
    context.addIssue({ code: 'custom', message: `a table with one of ${GIVEN_AS.join(', ')}` });
  }
  refuseBoth(given, GIVEN_AS, context);
  if (given.provider === 'hmac' && given.header === undefined) {
    context.addIssue({
      code: 'custom',
      path: ['header'],
      message: 'given with `provider: hmac`: the location of the signature',
    });
  }
  const foreign = given.provider === 'hmac' ? undefined : OF_HMAC.find((name) => given[name] !== undefined);
  if (foreign !== undefined) {
    context.addIssue({ code: 'custom', path: [foreign], message: 'left out unless `provider` is hmac' });
  }
  if (given.provider !== 'standard') return;
  // Checks the form of webhook secrets: any other secret could never verify a webhook. Reported here, before the first webhook arrives.
  const [key, known] =
    given.secret === undefined ? (['secrets', given.secrets ?? []] as const) : (['secret', [given.secret]] as const);
  if (!known.every(isStandardSecret)) context.addIssue({ code: 'custom', path: [key], message: STANDARD });
};

const filled = (value: object): object => {
  const { provider, algorithm = 'sha256', encoding = 'hex', prefix = '' } = value as Written;
  return provider === 'hmac' ? { ...value, algorithm, encoding, prefix } : value;
};
