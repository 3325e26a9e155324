// Value types of a policy. Their error messages complete the phrase "must be" and never repeat the value.

import { nearestWord } from '@tunnel/errors';
import { isToken } from '@tunnel/http1';
import { problemOfText } from '@tunnel/rules/names';
import * as z from 'zod';
import { POLICY_BOUNDS } from '../limits.ts';
import { problemOfGlob } from '../match/glob.ts';
import { problemOfNetwork } from '../match/network-set.ts';

/** Maximum length of a service name, which is sent with every stream. */
const POLICY_SERVICE_NAME_MAX_CHARS = 32;
/** Maximum length of a text without a specific limit: globs, URLs, header values. */
const POLICY_TEXT_MAX_CHARS = 2000;
/** Maximum entries in a list of globs, header names or claim values. */
export const POLICY_LIST_MAX = 100;

/** `file`: as people write it. `wire`: as it is sent, with lists only, and with digests instead of secrets where possible. */
export type Dialect = 'file' | 'wire';

const TEXT_MAX: number = POLICY_TEXT_MAX_CHARS;

// ---- forms ----

/** A table that rejects unknown keys and suggests the nearest known key. */
export const table = <S extends z.ZodRawShape>(shape: S): z.ZodObject<S, z.core.$strict> =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return 'a table';
      const key = String((issue['keys'] as readonly string[])[0]);
      return `unknown key \`${shownKey(key)}\`; ${helpFor(key, Object.keys(shape))}`;
    },
  });

const helpFor = (key: string, known: readonly string[]): string => {
  // YAML reads `{ token:abc }` as a single key that contains the secret.
  const joined = known.find((name) => key.startsWith(`${name}:`));
  if (joined !== undefined) return `a space is missing after \`${joined}:\``;
  const near = nearestWord(key, known);
  return near === undefined ? `known here: ${known.join(', ')}` : `did you mean \`${near}\`?`;
};

/** A key that does not look like a name is not repeated, because it may contain a secret. */
const shownKey = (key: string): string => (/^[\w.-]{1,40}$/.test(key) ? key : '…');

/** In a file, a single value can stand for a list. */
export const list = <T extends z.ZodType>(
  dialect: Dialect,
  item: T,
  { max = POLICY_LIST_MAX, what }: { readonly max?: number; readonly what: string },
): z.ZodType<readonly z.output<T>[]> => {
  const error = dialect === 'file' ? `${what}, or a list of them` : `a list: ${what}`;
  if (dialect === 'wire') {
    const values = z.array(z.unknown(), { error });
    return judgedInTurn(values.min(1, { error: `${error}, not empty` }).max(max, { error: `at most ${max}` }), item);
  }
  const many = z
    .array(item, { error })
    .min(1, { error: `${error}, not empty` })
    .max(max, { error: `at most ${max}` });
  return z.preprocess((value) => (Array.isArray(value) || value === undefined ? value : [value]), many) as never;
};

/**
 * Parses an untrusted list: checks its length first and stops at the first invalid item. Describing ten thousand errors would take a tenth
 * of a second.
 */
export const judgedInTurn = <T extends z.ZodType>(
  values: z.ZodArray<z.ZodUnknown>,
  item: T,
): z.ZodType<readonly z.output<T>[]> =>
  values.transform((given, context) => {
    const judged: z.output<T>[] = [];
    for (const [index, value] of given.entries()) {
      const { data, error } = item.safeParse(value);
      if (error !== undefined) {
        for (const issue of error.issues) {
          context.issues.push({ ...issue, path: [index, ...issue.path], input: value } as z.core.$ZodRawIssue);
        }
        return z.NEVER;
      }
      judged.push(data);
    }
    return judged;
  }) as never;

export const wholeNumber = (from: number, to: number): z.ZodNumber => {
  const error = `a whole number from ${from} to ${to}`;
  return z.int({ error }).min(from, { error }).max(to, { error });
};

export const flag = (): z.ZodBoolean => z.boolean({ error: 'true or false' });

export const oneOf = <const T extends string>(names: readonly T[]): z.ZodType<T> =>
  z.enum(names as unknown as Readonly<Record<string, T>> & readonly T[], {
    error: ({ input }) => {
      const near = typeof input === 'string' ? nearestWord(input, names) : undefined;
      return `one of ${names.join(', ')}${near === undefined ? '' : `; did you mean ${near}?`}`;
    },
  }) as never;

/** A text accepted by a predicate. */
export const text = (expected: string, isGood: (value: string) => boolean, max: number = TEXT_MAX): z.ZodString =>
  z
    .string({ error: expected })
    .max(max, { error: `at most ${max} characters` })
    .refine(isGood, { error: expected });

/** A text with a test that explains the error. */
const explained = (expected: string, problemOf: (value: string) => string | null): z.ZodString =>
  z
    .string({ error: expected })
    .max(TEXT_MAX, { error: `at most ${TEXT_MAX} characters` })
    .superRefine((value, context) => {
      const problem = problemOf(value);
      if (problem !== null) context.addIssue({ code: 'custom', message: `${expected} (${problem})` });
    });

/** A name shown to people. */
export const printable = (max: number): z.ZodString =>
  text(`1 to ${max} printable characters`, (value) => problemOfText(value, max) === null);

const SIZE = /^(\d{1,15}) ?(KiB|MiB|GiB|B)?$/;
const UNITS: ReadonlyMap<string | undefined, number> = new Map([
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
]);

/** Size in bytes; in a file also with a unit, such as `10MiB`. */
export const size = (dialect: Dialect, from: number, to: number): z.ZodType<number> => {
  const error = `a number of bytes from ${from} to ${to}${dialect === 'file' ? ', or one with KiB, MiB or GiB' : ''}`;
  const bytes = z.int({ error }).min(from, { error }).max(to, { error });
  if (dialect === 'wire') return bytes;
  return z.preprocess((value) => {
    const [, digits, unit] = typeof value === 'string' ? (SIZE.exec(value) ?? []) : [];
    return digits === undefined ? value : Number(digits) * (UNITS.get(unit) ?? 1);
  }, bytes);
};

/** Length of the UTF-8 encoding in bytes. */
export const utf8Length = (value: string): number => {
  let bytes = 0;
  for (let at = 0; at < value.length; at += 1) {
    const unit = value.charCodeAt(at);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    // A surrogate pair takes four bytes, two per half.
    else bytes += unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
  }
  return bytes;
};

export const body = (): z.ZodString => {
  const error = `a text of at most ${POLICY_BOUNDS.POLICY_BODY_MAX_BYTES} bytes`;
  return z.string({ error }).refine((value) => utf8Length(value) <= POLICY_BOUNDS.POLICY_BODY_MAX_BYTES, { error });
};

export const fileName = (): z.ZodString => text('the name of a file', (value) => value.trim() !== '');

/** Reports an error if more than one of the names is given. */
export const refuseBoth = (value: object, names: readonly string[], context: z.core.$RefinementCtx): void => {
  const [first, second] = names.filter((name) => (value as Record<string, unknown>)[name] !== undefined);
  if (second === undefined) return;
  context.addIssue({ code: 'custom', path: [second], message: `left out when \`${first}\` is given` });
};

// ---- match conditions ----

export const pathGlob = (): z.ZodString => explained('a glob over paths', (value) => problemOfGlob(value, 'path'));

export const network = (): z.ZodString => explained('an address or a network', problemOfNetwork);

/** Methods are case-sensitive, so they are converted to upper case. */
export const method = (): z.ZodType<string> =>
  text('a method, such as GET', isToken, 40).transform((value) => value.toUpperCase());

/** Whether a header is present, or globs for its value. */
export const headerTest = (dialect: Dialect): z.ZodType<boolean | readonly string[]> => {
  const test = z.custom<boolean | readonly string[]>(
    (value) =>
      typeof value === 'boolean' ||
      (Array.isArray(value) &&
        value.length > 0 &&
        value.length <= POLICY_LIST_MAX &&
        value.every((glob) => typeof glob === 'string' && problemOfGlob(glob, 'value') === null)),
    { error: 'true, false, or globs for the value' },
  );
  return dialect === 'wire' ? test : z.preprocess((value) => (typeof value === 'string' ? [value] : value), test);
};

// ---- headers ----

/** Fields of the connection and message framing, which determine where a message ends, and the visitor's address, which the edge writes. */
const OF_THE_EDGE: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-real-ip',
]);

/** Folds a field name: lower case, and `-` for `_`, because some services read `_` as `-`. */
const folded = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** Returns whether rules may set, add or remove the field. */
export const isChangeableHeader = (name: string): boolean => {
  const plain = folded(name);
  return !OF_THE_EDGE.has(plain) && !plain.startsWith('x-forwarded-') && !plain.startsWith('x-tunnel-');
};

/** Fields in which the edge names the visitor. Values from visitors are not trusted. */
export const isIdentityHeader = (name: string): boolean => /^x-tunnel-(?:user|auth)$/.test(folded(name));

const HEADER_NAME_MAX = 100;
const HEADER_NAME = 'the name of a header';
const CHANGEABLE =
  'the name of a header that rules may change (not Host, framing, hop-by-hop, X-Real-IP, X-Forwarded-* or X-Tunnel-*)';

const OF_VISITORS =
  'the name of a header that visitors send (not X-Tunnel-User or X-Tunnel-Auth, which the edge sets for the service)';

const isHeaderName = (value: string): boolean => isToken(value) && value.length <= HEADER_NAME_MAX;

/** Field name, converted to lower case. */
export const headerName = (): z.ZodType<string> =>
  text(HEADER_NAME, isHeaderName).transform((value) => value.toLowerCase());

export const changeableHeader = (): z.ZodType<string> =>
  text(CHANGEABLE, (value) => isHeaderName(value) && isChangeableHeader(value)).transform((value) =>
    value.toLowerCase(),
  );

/** Only visible ASCII, blank and tab, because the value is written into a head unchanged. */
const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e]*$/.test(value);
const HEADER_VALUE = 'visible ASCII characters and spaces, without line breaks';

export const headerValue = (): z.ZodString => text(HEADER_VALUE, isHeaderValue);

/** Headers by name, without duplicates regardless of case. `fold` converts names to lower case. */
export const headerTable = <V extends z.ZodType>(
  value: V,
  { changes, fold }: { readonly changes: boolean; readonly fold: boolean },
): z.ZodType<Readonly<Record<string, z.output<V>>>> => {
  const key = fold ? z.string().transform((name) => name.toLowerCase()) : z.string();
  const entries = z
    .record(key, value, { error: HEADER_TABLE })
    .refine((headers) => Object.keys(headers).length > 0, { error: 'a table with at least one header' });
  return z.preprocess((written, context) => {
    if (!isTable(written)) return written;
    const names = Object.keys(written);
    // Entries are counted before they are validated.
    if (names.length > POLICY_LIST_MAX) {
      context.addIssue({ code: 'custom', message: `at most ${POLICY_LIST_MAX} headers` });
      return written;
    }
    const strange = names.some((name) => !isHeaderName(name));
    // An invalid name is not repeated, because it may be a whole line with a secret value.
    if (strange) context.addIssue({ code: 'custom', message: `${HEADER_TABLE} (a name is invalid)` });
    const ours = names.find((name) => (changes ? !isChangeableHeader(name) : isIdentityHeader(name)));
    const message = changes ? CHANGEABLE : OF_VISITORS;
    if (!strange && ours !== undefined) context.addIssue({ code: 'custom', path: [ours], message });
    if (new Set(names.map((name) => name.toLowerCase())).size < names.length) {
      context.addIssue({ code: 'custom', message: 'a table with every header name once, regardless of case' });
    }
    return written;
  }, entries) as never;
};

const HEADER_TABLE = 'a table of header names and values';

/** Counts the entries of a table before they are validated. */
export const atMost = (schema: z.ZodType, max: number, what: string): z.ZodType =>
  z.preprocess((written, context) => {
    if (isTable(written) && Object.keys(written).length > max) {
      context.addIssue({ code: 'custom', message: `at most ${max} ${what}` });
    }
    return written;
  }, schema);

export const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// ---- placeholders ----

export const PLACEHOLDERS: readonly string[] = ['address', 'host', 'path', 'query', 'user', 'request_id'];

/** Also finds misspelled placeholders: `{ user }`, `{user-agent}`. Text with quotes or colons is no placeholder. */
const PLACEHOLDER_LIKE = /\{\s*([\w.-]+)\s*\}/g;

/**
 * An unknown placeholder is named in the error if it is a plain word. Longer text or text with digits may be a secret in braces and is not
 * repeated.
 */
const SHOWN_WORD = /^[a-z][a-z_.-]{0,23}$/i;

const problemOfPlaceholders = (value: string): string | null => {
  for (const [whole, name = ''] of value.matchAll(PLACEHOLDER_LIKE)) {
    if (PLACEHOLDERS.includes(name) && whole === `{${name}}`) continue;
    const near = nearestWord(name, PLACEHOLDERS);
    const help =
      near === undefined ? `known: ${PLACEHOLDERS.map((known) => `{${known}}`).join(' ')}` : `did you mean {${near}}?`;
    return `${SHOWN_WORD.test(name) ? whole : 'one'} is unknown; ${help}`;
  }
  return null;
};

/** A header value with placeholders. */
export const headerTemplate = (): z.ZodString =>
  headerValue().superRefine((value, context) => {
    const problem = problemOfPlaceholders(value);
    if (problem !== null) context.addIssue({ code: 'custom', message: `text with known placeholders (${problem})` });
  });

const REDIRECT = 'a path, or a URL that starts with http:// or https://';
/** The host is literal or `{host}`, so that visitors cannot choose another host. */
const REDIRECT_ORIGIN =
  /^https?:\/\/(?:\{host\}|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?(?=[/?#]|\{path\}|\{query\}|$)/i;

export const redirectTarget = (): z.ZodString =>
  explained(REDIRECT, (value) => {
    if (!/^[!-[\]-~]+$/.test(value)) return 'of visible ASCII characters, without spaces and backslashes';
    if (value.startsWith('/')) return problemOfPlaceholders(value);
    if (!/^https?:\/\//.test(value)) return 'it starts with neither';
    return REDIRECT_ORIGIN.test(value) ? problemOfPlaceholders(value) : 'the host must be literal or exactly {host}';
  });

// ---- URLs and origins ----

const HOST = '(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?';
const WEB_ADDRESS = new RegExp(`^https?://${HOST}(?:/[!-"$-[\\]-~]*)?$`, 'i');
const ORIGIN = new RegExp(`^(https?)://${HOST}$`, 'i');

/** Validated as text, because a parser that repairs URLs would fetch another address. */
export const url = (): z.ZodString =>
  text('a URL that starts with https:// (http:// if the edge allows it)', (value) => WEB_ADDRESS.test(value));

/** Normalizes an origin as browsers write it: lower case, without the default port. */
const plainOrigin = (value: string): string =>
  value.toLowerCase().replace(/^(http:.*):80$|^(https:.*):443$/, (_, plain, secure) => String(plain ?? secure));

export const origin = (): z.ZodType<string> =>
  text('an origin, such as https://app.example.com', (value) => ORIGIN.test(value)).transform(plainOrigin);

/** Origin of a CORS rule. */
export const originOrAny = (): z.ZodType<string> =>
  text('an origin, such as https://app.example.com, or "*"', (value) => value === '*' || ORIGIN.test(value)).transform(
    plainOrigin,
  );

/** Service name for `route`. */
export const serviceName = (): z.ZodString => {
  const max = POLICY_SERVICE_NAME_MAX_CHARS;
  const expected = `the name of a service: 1 to ${max} letters, digits, \`.\`, \`_\` and \`-\`, a letter or digit first`;
  return text(expected, (value) => value.length <= max && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(value));
};

/** Prefix to add to a path or to remove from it. */
export const pathPrefix = (): z.ZodString =>
  text('a path that starts with /, without a query, empty segments or dots', (value) => {
    if (!/^\/[!-"$->@-[\]-~]*$/.test(value) || value.includes('//')) return false;
    return !value.split('/').some((segment) => segment === '.' || segment === '..');
  });
