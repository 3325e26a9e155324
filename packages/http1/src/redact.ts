// What a captured request shows to people: everything but what would let a reader act as somebody else.
// Stored captures stay whole, for replay; this runs on every answer.

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

/** Header fields with a name like a secret whose values are harmless. */
const OPEN_FIELDS: ReadonlySet<string> = new Set(['idempotency-key', 'sec-websocket-key']);

/** Fields whose value is a URL: a sign-in's way back carries its code there. */
const URL_FIELDS: ReadonlySet<string> = new Set(['location', 'content-location', 'referer']);

/** Anywhere in a name: `access_token`, `apiKey`, `client-secret`, `new_password`. Rather too much than too little. */
const SECRET_WORDS = ['token', 'key', 'secret', 'password', 'passwd', 'code'] as const;

/** Whole names: `state` of a sign-in is a secret, `estate` is not. */
const SECRET_NAMES: ReadonlySet<string> = new Set(['state', 'nonce']);

export const isSecretName = (name: string): boolean => {
  const lower = name.toLowerCase();
  return SECRET_NAMES.has(lower) || SECRET_WORDS.some((word) => lower.includes(word));
};

/** `others`: further fields whose value is a secret, in lower case. */
export const redactFields = (fields: Iterable<ShownField>, others: readonly string[] = []): ShownField[] =>
  Array.from(fields, ({ name, value }) => {
    const lower = name.toLowerCase();
    // Some services take `_` for `-`, and so do some who send.
    const plain = lower.replaceAll('_', '-');
    const isSame = (other: string): boolean => other.replaceAll('_', '-') === plain;
    const isSecret = SECRET_FIELDS.has(plain) || (isSecretName(plain) && !OPEN_FIELDS.has(plain));
    if (isSecret || others.some(isSame)) return { name, value: REDACTED };
    return { name, value: isUrlField(lower) ? redactUrl(value) : value };
  });

export const isUrlField = (lower: string): boolean => URL_FIELDS.has(lower);

/** What stands in the place of a secret: by its name as a reader understands it, and its value as it stands in the text. */
export type ReplaceSecret = (name: string, value: string) => string;

const HIDE: ReplaceSecret = () => REDACTED;

/** A path or a URL: the fields of its query, and of a fragment that looks like one, as sign-ins use both. */
export const redactUrl = (url: string, replace = HIDE): string => {
  const start = url.search(/[?#]/);
  if (start === -1) return url;
  const parts = url.slice(start).split(/([?#])/);
  const shown = parts.map((part) => (part === '?' || part === '#' ? part : redactForm(part, replace)));
  return url.slice(0, start) + shown.join('');
};

/** `name=value&name=value`, also when it was cut off. */
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

/** A textual body by its Content-Type; other kinds than forms are returned as they are. */
export const redactBody = (contentType: string | null, body: string, replace = HIDE): string => {
  const type = (contentType ?? '').trim().toLowerCase();
  if (type.startsWith('application/x-www-form-urlencoded')) return redactForm(body, replace);
  if (!type.startsWith('multipart/form-data')) return body;
  const boundary = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(contentType ?? '');
  return redactMultipart(body, boundary?.[1] ?? boundary?.[2] ?? '', replace);
};

/** Part by part; the last one may be cut off. Without a boundary the parts cannot be told apart, so nothing is shown. */
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

/** `to%6ben` is read as `token` by the service, so it is by us. */
const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name);
  } catch {
    return name.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
};

/** Narrower than for forms: `code` and `key` alone are ordinary words of an API's JSON. */
const SECRET_MEMBER = /token|secret|passw(?:or)?d|passphrase|api[_-]?key|private[_-]?key|access[_-]?key|authorization/i;

// A member whose value is a string, another scalar, or a list without lists in it; each may be cut off at the end.
// The name is bounded: without that, a text of nothing but quotes would take the square of its length.
const MEMBER = /("((?:[^"\\]|\\.){1,100})"\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\\?$)|\[[^[\]]*(?:\]|$)|[^\s"[\]{},]+)/g;

const HIDE_MEMBER: ReplaceSecret = () => `"${REDACTED}"`;

/** Secrets by the names of their members. On the text, so that a body that was cut off is covered, too. */
export const redactJson = (contentType: string | null, text: string, replace = HIDE_MEMBER): string => {
  if (!/json|graphql/i.test(contentType ?? '')) return text;
  return text.replace(MEMBER, (whole, lead: string, name: string, value: string) => {
    if (!SECRET_MEMBER.test(unescaped(name)) || value === 'null') return whole;
    return lead + replace(unescaped(name), value);
  });
};

/** `"to\u006ben"` is `token` to whoever reads the body. */
const unescaped = (name: string): string =>
  name.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

const READABLE =
  /^(?:text\/|application\/(?:json|xml|javascript|ecmascript|x-javascript|x-www-form-urlencoded|graphql|ndjson|x-ndjson|json-seq|yaml|x-yaml|toml|sql)\b|(?:application|image|model|message)\/[^;\s]+\+(?:json|xml|yaml)\b)/i;

/** Whether a person can read the body: by content type, as the sender says it. null: nobody said that it is text. */
export const isTextual = (contentType: string | null): boolean => contentType !== null && READABLE.test(contentType);
