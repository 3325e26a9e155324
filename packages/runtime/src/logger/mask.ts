// Masks secrets before lines are written: fields with a secret-like name, and texts that look like a secret.
import { Secret } from '../secret.ts';

const MASK = '[secret]';
/** Maximum depth of logged structures. Deeper structures are cut, which also ends cycles. */
const MOST_LEVELS = 6;
const MOST_ENTRIES = 100;

// Names of secret fields, compared without case, hyphens, underscores and blanks: auth_token, X-Api-Key, groupKey, resume_secret, set-cookie.
const SECRET_NAME =
  /(token|secret|password|apikey|groupkey|authorization|cookie|credential|privatekey|secretkey|smtpurl)s?$/;

/** Matches API keys of clients and keys of edges, to mask all but their prefix. */
const OWN_KEY = /\b(tn[le]_)[\w-]{6,}/g;
const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi;
const URL_PASSWORD = /(:\/\/[^\s/:@]*):[^\s/@]+@/g;
/** A password in a query, as in the URL of a database reached through a socket. */
const QUERY_PASSWORD = /([?&]password=)[^\s&"'#]+/gi;

export const maskText = (text: string): string =>
  text
    .replace(OWN_KEY, `$1${MASK}`)
    .replace(BEARER, `$1 ${MASK}`)
    .replace(URL_PASSWORD, `$1:${MASK}@`)
    .replace(QUERY_PASSWORD, `$1${MASK}`);

export const maskFields = (fields: object): Record<string, unknown> =>
  fields instanceof Error ? { err: maskError(fields, MOST_LEVELS) } : maskEntries(fields, MOST_LEVELS);

const isSecretName = (name: string): boolean => SECRET_NAME.test(name.replace(/[-_ ]/g, '').toLowerCase());

const maskEntries = (value: object, levels: number): Record<string, unknown> => {
  const out: Record<string, unknown> = {};
  let entries = 0;
  for (const name of Object.keys(value)) {
    entries += 1;
    if (entries > MOST_ENTRIES) {
      out['…'] = 'more entries';
      break;
    }
    const inner: unknown = (value as Record<string, unknown>)[name];
    // Defined instead of assigned, so that a field named __proto__ is treated as data.
    Object.defineProperty(out, name, {
      value: isSecretName(name) && hides(inner) ? MASK : maskValue(inner, levels - 1),
      enumerable: true,
    });
  }
  return out;
};

/** Whether a value with a secret name is masked. Undefined, null and booleans reveal no secret, and show whether a value was given. */
const hides = (value: unknown): boolean => value !== undefined && value !== null && typeof value !== 'boolean';

const maskValue = (value: unknown, levels: number): unknown => {
  if (typeof value === 'string') return maskText(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Secret) return MASK;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString();
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  if (levels <= 0) return '[deep]';
  if (value instanceof Error) return maskError(value, levels);
  if (Array.isArray(value)) return value.slice(0, MOST_ENTRIES).map((item) => maskValue(item, levels - 1));
  return maskEntries(value, levels);
};

const maskError = (error: Error, levels: number): Record<string, unknown> => ({
  type: error.name,
  message: maskText(error.message),
  ...(error.stack === undefined ? {} : { stack: maskText(error.stack) }),
  ...maskEntries(error, levels),
  ...(error.cause === undefined ? {} : { cause: maskValue(error.cause, levels - 1) }),
});
