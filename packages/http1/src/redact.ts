// Hides secrets in captured requests that are shown to users: every value that would allow a reader to act as a different person. Stored
// captures stay unchanged, for replays; values are hidden whenever a capture is shown.

export const REDACTED = '[redacted]';

export interface ShownField {
  readonly name: string;
  readonly value: string;
}

const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'proxy-authorization',
  'x-api-key',
  'x-tunnel-token',
  'x-gitlab-token',
]);

/** Header fields with a name that looks secret, but with harmless values. */
const OPEN_FIELDS: ReadonlySet<string> = new Set(['idempotency-key', 'sec-websocket-key']);

/** Header fields with a URL as the value. The return URL of a sign-in contains its code. */
const URL_FIELDS: ReadonlySet<string> = new Set(['location', 'content-location', 'referer']);

/**
 * Words that mark a name as secret wherever they occur: `access_token`, `apiKey`, `client-secret`, `new_password`. Hiding too much is
 * better than too little.
 */
const SECRET_WORDS = ['token', 'key', 'secret', 'password', 'passwd', 'code'] as const;

/** Secret names that must match as a whole: the `state` of a sign-in is a secret, `estate` is not. */
const SECRET_NAMES: ReadonlySet<string> = new Set(['state', 'nonce']);

export const isSecretName = (name: string): boolean => {
  const lower = name.toLowerCase();
  return SECRET_NAMES.has(lower) || SECRET_WORDS.some((word) => lower.includes(word));
};

/** Hides the secret values of header fields. `others` are additional secret fields, in lower case. */
export const redactFields = (fields: Iterable<ShownField>, others: readonly string[] = []): ShownField[] =>
  Array.from(fields, ({ name, value }) => {
    const lower = name.toLowerCase();
    // Treat `_` like `-`, as some services and senders do.
    const plain = lower.replaceAll('_', '-');
    const isSame = (other: string): boolean => other.replaceAll('_', '-') === plain;
    const isSecret = SECRET_FIELDS.has(plain) || (isSecretName(plain) && !OPEN_FIELDS.has(plain));
    if (isSecret || others.some(isSame)) return { name, value: REDACTED };
    return { name, value: isUrlField(lower) ? redactUrl(value) : value };
  });

export const isUrlField = (lower: string): boolean => URL_FIELDS.has(lower);

/** Returns the replacement of a secret. `name` is decoded; `value` is the secret as written in the text. */
export type ReplaceSecret = (name: string, value: string) => string;

const HIDE: ReplaceSecret = () => REDACTED;

/** Hides secrets in a path or URL: in the fields of the query, and in a fragment with fields. Sign-ins use both. */
export const redactUrl = (url: string, replace = HIDE): string => {
  const start = url.search(/[?#]/);
  if (start === -1) return url;
  const parts = url.slice(start).split(/([?#])/);
  const shown = parts.map((part) => (part === '?' || part === '#' ? part : redactForm(part, replace)));
  return url.slice(0, start) + shown.join('');
};

/** Hides secrets in a form (`name=value&name=value`), even if the form was cut off. */
const redactForm = (form: string, replace: ReplaceSecret): string =>
  form
    .split(/([&;])/)
    .map((pair) => {
      const equals = pair.indexOf('=');
      if (equals === -1 || equals === pair.length - 1) return pair;
      const name = decoded(pair.slice(0, equals));
      return isSecretName(name) ? `${pair.slice(0, equals)}=${replace(name, pair.slice(equals + 1))}` : pair;
    })
    .join('');

/** Hides secrets in a textual body that is a form by its Content-Type. Other bodies are returned unchanged. */
export const redactBody = (contentType: string | null, body: string, replace = HIDE): string => {
  const type = (contentType ?? '').trim().toLowerCase();
  if (type.startsWith('application/x-www-form-urlencoded')) return redactForm(body, replace);
  if (!type.startsWith('multipart/form-data')) return body;
  const boundary = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(contentType ?? '');
  return redactMultipart(body, boundary?.[1] ?? boundary?.[2] ?? '', replace);
};

/**
 * Hides secrets in a multipart form; its last part can be cut off. Without a boundary the parts cannot be separated, so the whole body is
 * hidden.
 */
const redactMultipart = (body: string, boundary: string, replace: ReplaceSecret): string => {
  if (boundary === '') return REDACTED;
  return body
    .split(`--${boundary}`)
    .map((part) => {
      const headEnd = part.indexOf('\r\n\r\n');
      const head = headEnd === -1 ? part : part.slice(0, headEnd);
      const field = /[;\s]name\*?=(?:"([^"]*)"|([^;\s]*))/i.exec(head);
      const name = decoded(field?.[1] ?? field?.[2] ?? '');
      if (headEnd === -1 || field === null || !isSecretName(name)) return part;
      return `${head}\r\n\r\n${replace(name, part.slice(headEnd + 4).replace(/\r\n$/, ''))}\r\n`;
    })
    .join(`--${boundary}`);
};

/** Decodes a name, because the service reads `to%6ben` as `token`. */
const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name);
  } catch {
    return name.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
};

/** Names of secret JSON members. Stricter than for forms, because `code` and `key` on their own are common words in the JSON of APIs. */
const SECRET_MEMBER = /token|secret|passw(?:or)?d|passphrase|api[_-]?key|private[_-]?key|access[_-]?key|authorization/i;

// A JSON member with a string, another scalar, or a list without nested lists as its value. The value can be cut off at the end. The
// length of the name is limited, because matching a text that consists only of quotes would otherwise take quadratic time.
const MEMBER = /("((?:[^"\\]|\\.){1,100})"\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\\?$)|\[[^[\]]*(?:\]|$)|[^\s"[\]{},]+)/g;

const HIDE_MEMBER: ReplaceSecret = () => `"${REDACTED}"`;

/** Hides secrets in a JSON text by the names of its members. Works on the text, so that a body that was cut off is covered as well. */
export const redactJson = (contentType: string | null, text: string, replace = HIDE_MEMBER): string => {
  if (!/json|graphql/i.test(contentType ?? '')) return text;
  return text.replace(MEMBER, (whole, lead: string, name: string, value: string) => {
    if (!SECRET_MEMBER.test(unescaped(name)) || value === 'null') return whole;
    return lead + replace(unescaped(name), value);
  });
};

/** Decodes a JSON name, because readers of the body see `"to\u006ben"` as `token`. */
const unescaped = (name: string): string =>
  name.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

const READABLE =
  /^(?:text\/|application\/(?:json|xml|javascript|ecmascript|x-javascript|x-www-form-urlencoded|graphql|ndjson|x-ndjson|json-seq|yaml|x-yaml|toml|sql)\b|(?:application|image|model|message)\/[^;\s]+\+(?:json|xml|yaml)\b)/i;

/** Returns true if users can read a body of this content type. False without a content type, because nothing declares the body as text. */
export const isTextual = (contentType: string | null): boolean => contentType !== null && READABLE.test(contentType);
