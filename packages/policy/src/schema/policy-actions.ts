// Schemas of the actions, in both dialects: as people write them and as they are sent.

import * as z from 'zod';
import type { ActionName } from '../policy.ts';
import { POLICY_NETWORKS_MAX } from './limits.ts';
import { authSchema } from './policy-auth.ts';
import {
  body,
  changeableHeader,
  type Dialect,
  fileName,
  flag,
  headerName,
  headerTable,
  headerTemplate,
  headerValue,
  isIdentityHeader,
  list,
  method,
  network,
  originOrAny,
  pathPrefix,
  redirectTarget,
  refuseBoth,
  serviceName,
  size,
  table,
  text,
  wholeNumber,
} from './policy-values.ts';
import { verifyWebhookSchema } from './policy-webhook.ts';

/** Maximum values of a rate limit: requests per period, and burst. */
const POLICY_RATE_REQUESTS_MAX = 1_000_000;
/** Maximum period of a rate limit: a day. A longer period would be a quota, which would have to survive a restart. */
const POLICY_RATE_PER_SECS_MAX = 86_400;
/** Largest `max_body`: 1 TiB, which is practically no limit. */
const POLICY_MAX_BODY_BYTES = 1024 * 1024 * 1024 * 1024;
/** Maximum time that browsers cache a preflight response, the longest that any browser honors. */
const POLICY_CORS_MAX_AGE_SECS = 86_400;

/** Schema of every rule action. The rule schema enforces exactly one action. */
export const actionSchemas = (dialect: Dialect): Record<ActionName, z.ZodType> => ({
  allow: z.literal(true, { error: 'true' }),
  deny: deny(dialect),
  allow_addresses: networks(dialect),
  auth: authSchema(dialect),
  verify_webhook: verifyWebhookSchema(dialect),
  rate_limit: rateLimit(),
  max_body: size(dialect, 0, POLICY_MAX_BODY_BYTES),
  redirect: table({ to: redirectTarget(), status: redirectStatus().default(302) }),
  respond: respond(dialect),
  rewrite: rewrite(),
  route: serviceName(),
  request_headers: headerChanges(dialect),
  response_headers: headerChanges(dialect),
  cors: cors(dialect),
  error_page: dialect === 'wire' ? table({ body: body() }) : errorPageOfFile(),
});

const DENIED = 403;

const deny = (dialect: Dialect): z.ZodType<number> => {
  const error = `${dialect === 'file' ? 'true, or ' : ''}a status from 400 to 599`;
  const status = z.int({ error }).min(400, { error }).max(599, { error });
  return dialect === 'wire' ? status : z.preprocess((value) => (value === true ? DENIED : value), status);
};

export const networks = (dialect: Dialect): z.ZodType<readonly string[]> =>
  list(dialect, network(), { what: 'an address or a network', max: POLICY_NETWORKS_MAX });

// ---- limits ----

const BY = 'address, user, tunnel or header:NAME';

const by = (): z.ZodType<string> =>
  text(BY, (value) => /^(?:address|user|tunnel|header:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100})$/.test(value))
    .transform((value) => value.toLowerCase())
    .refine((value) => !isIdentityHeader(value.replace('header:', '')), {
      error: 'user, because visitors can fake other values',
    });

const rateLimit = (): z.ZodType =>
  table({
    requests: wholeNumber(1, POLICY_RATE_REQUESTS_MAX),
    per_secs: wholeNumber(1, POLICY_RATE_PER_SECS_MAX),
    burst: wholeNumber(1, POLICY_RATE_REQUESTS_MAX).optional(),
    by: by().default('address'),
  }).transform((rule) => ({ ...rule, burst: rule.burst ?? rule.requests }));

// ---- answers ----

const redirectStatus = (): z.ZodType<number> => {
  const error = '301, 302, 303, 307 or 308';
  return z.literal([301, 302, 303, 307, 308], { error });
};

/** HTTP status codes of responses that have no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

const contentType = (): z.ZodString =>
  text('a content type, such as text/html', (value) => /^[\x21-\x7e]+\/[\x21-\x7e][\x20-\x7e]*$/.test(value), 200);

const respond = (dialect: Dialect): z.ZodType => {
  const answer = table({
    status: wholeNumber(200, 599),
    body: body().optional(),
    ...(dialect === 'file' && { body_file: fileName().optional() }),
    content_type: contentType().default('text/plain'),
    headers: headerTable(headerValue(), { changes: true, fold: false }).optional(),
  }).superRefine((value, context) => {
    const { status, headers = {} } = value;
    const hasBody = (value.body ?? '') !== '' || 'body_file' in value;
    if (BODILESS.has(status) && hasBody) {
      context.addIssue({
        code: 'custom',
        path: ['body'],
        message: `left out: a response with status ${status} has no body`,
      });
    }
    if (Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')) {
      context.addIssue({ code: 'custom', path: ['headers'], message: 'without Content-Type; use `content_type`' });
    }
    refuseBoth(value, ['body', 'body_file'], context);
  });
  return dialect === 'file' ? answer : answer.transform((value) => ({ ...value, body: value.body ?? '' }));
};

const errorPageOfFile = (): z.ZodType =>
  table({ body: body().optional(), body_file: fileName().optional() }).superRefine((value, context) => {
    if (value.body === undefined && value.body_file === undefined) {
      context.addIssue({ code: 'custom', message: 'a table with `body` or `body_file`' });
    }
    refuseBoth(value, ['body', 'body_file'], context);
  });

// ---- changes ----

const rewrite = (): z.ZodType =>
  table({ strip_prefix: pathPrefix().optional(), add_prefix: pathPrefix().optional() }).refine(
    ({ strip_prefix, add_prefix }) => strip_prefix !== undefined || add_prefix !== undefined,
    { error: 'a table with `strip_prefix` or `add_prefix`' },
  );

const headerChanges = (dialect: Dialect): z.ZodType =>
  table({
    set: headerTable(headerTemplate(), { changes: true, fold: false }).optional(),
    add: headerTable(headerTemplate(), { changes: true, fold: false }).optional(),
    remove: list(dialect, changeableHeader(), { what: 'the name of a header' }).optional(),
  }).refine(({ set, add, remove }) => set !== undefined || add !== undefined || remove !== undefined, {
    error: 'a table with `set`, `add` or `remove`',
  });

const cors = (dialect: Dialect): z.ZodType => {
  const names = (what: string, item: z.ZodType<string>) => list(dialect, item, { what }).optional();
  return table({
    origins: list(dialect, originOrAny(), { what: 'an origin, or "*"' }),
    methods: names('a method', method()),
    headers: names('the name of a header', headerName()),
    expose: names('the name of a header', headerName()),
    credentials: flag().default(false),
    max_age_secs: wholeNumber(0, POLICY_CORS_MAX_AGE_SECS).default(600),
  }).superRefine(({ origins, credentials }, context) => {
    // Rejects CORS credentials for any origin: every site could then read private data of the visitor. Browsers reject the combination as
    // well.
    if (!credentials || !origins.includes('*')) return;
    context.addIssue({ code: 'custom', path: ['credentials'], message: 'false when `origins` has "*"' });
  });
};
