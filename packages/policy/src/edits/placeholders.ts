// `{address} {host} {path} {query} {user} {request_id}` in header values and redirect targets: parsed once, filled per request.
import { isFieldValue } from '@tunnel/http1';
import type { HeaderPair, PolicyRequest } from '../policy-step.ts';
import { byteText } from '../text/bytes.ts';

const PLACEHOLDERS = ['address', 'host', 'path', 'query', 'user', 'request_id'] as const;
type Placeholder = (typeof PLACEHOLDERS)[number];

const isPlaceholder = (name: string): name is Placeholder => (PLACEHOLDERS as readonly string[]).includes(name);

/** Parsed header value or redirect target: alternating texts and placeholders, or a plain string without placeholders. */
export type Template = string | readonly (string | { readonly fill: Placeholder })[];

/** Parses a template. Unknown names in braces stay literal text; the schema rejects them earlier. */
export const parseTemplate = (text: string): Template => {
  const pieces: (string | { readonly fill: Placeholder })[] = [];
  let from = 0;
  for (const found of text.matchAll(/\{(\w+)\}/g)) {
    const name = found[1] ?? '';
    if (!isPlaceholder(name)) continue;
    if (found.index > from) pieces.push(text.slice(from, found.index));
    pieces.push({ fill: name });
    from = found.index + found[0].length;
  }
  if (pieces.length === 0) return text;
  if (from < text.length) pieces.push(text.slice(from));
  // `slice` returns an array without spare capacity, because the array lives as long as the policy.
  return pieces.slice();
};

const valueOf = (name: Placeholder, request: PolicyRequest, user: string): string => {
  const { path } = request;
  switch (name) {
    case 'address':
      return request.address;
    case 'host':
      return request.host;
    case 'path':
      return path.includes('?') ? path.slice(0, path.indexOf('?')) : path;
    case 'query':
      return path.includes('?') ? path.slice(path.indexOf('?')) : '';
    case 'user':
      return user;
    case 'request_id':
      return request.requestId;
  }
};

/**
 * Characters that placeholders may still expand to in a request. The limit is needed because a path can be as long as a head, and a value
 * can repeat it hundreds of times.
 */
export interface FillRoom {
  fillLeft: number;
}

/** Fills the placeholders of a template. Returns null if the limit of expanded characters is reached. */
const filled = (template: Template, room: FillRoom, fill: (name: Placeholder) => string): string | null => {
  if (typeof template === 'string') return template;
  let text = '';
  for (const piece of template) {
    if (typeof piece === 'string') text += piece;
    else {
      const value = fill(piece.fill);
      room.fillLeft -= value.length;
      if (room.fillLeft < 0) return null;
      text += value;
    }
  }
  return text;
};

/** Fills a header value: one character per byte, without line breaks. Returns null if the limit of expanded characters is reached. */
export const headerValue = (
  template: Template,
  request: PolicyRequest,
  user: string,
  room: FillRoom,
): string | null => {
  if (typeof template === 'string') return template;
  let text = '';
  for (const piece of template) {
    if (typeof piece === 'string') text += piece;
    else {
      const value = piece.fill === 'user' ? userText(user) : fieldText(valueOf(piece.fill, request, user));
      room.fillLeft -= value.length;
      if (room.fillLeft < 0) return null;
      text += value;
    }
  }
  return text;
};

/**
 * Encodes a user name as a field value. Control characters and outer blanks are percent-encoded, so that two users never get the same
 * value.
 */
export const userText = (user: string): string => {
  if (isPlain(user)) return user;
  const bare = user.trim();
  const at = user.indexOf(bare);
  const inner = bare.replace(/[\u0000-\u001f\u007f]/g, encodeURIComponent);
  return fieldText(
    `${encodeURIComponent(user.slice(0, at))}${inner}${encodeURIComponent(user.slice(at + bare.length))}`,
  );
};

/** Returns true for visible ASCII with inner blanks, as most names are. */
const isPlain = (text: string): boolean => {
  const last = text.length - 1;
  for (let at = 0; at <= last; at += 1) {
    const code = text.charCodeAt(at);
    if (code > 0x7e || code < BLANK || (code === BLANK && (at === 0 || at === last))) return false;
  }
  return true;
};

const BLANK = 0x20;

type HeaderTemplate = readonly [name: string, value: Template];

const NONE: readonly never[] = [];

const isPair = (template: HeaderTemplate): template is HeaderPair => typeof template[1] === 'string';

/** Fills the values of a rule. Pairs without placeholders are reused. Returns null if the limit of expanded characters is reached. */
export const headerPairs = (
  templates: readonly HeaderTemplate[],
  request: PolicyRequest,
  user: string,
  room: FillRoom,
): readonly HeaderPair[] | null => {
  if (templates.length === 0) return NONE;
  // The list of header fields is allocated with its exact length, because captures keep the array.
  const pairs = new Array<HeaderPair>(templates.length);
  for (let at = 0; at < pairs.length; at += 1) {
    const template = templates[at] as HeaderTemplate;
    const pair = isPair(template) ? template : filledPair(template, request, user, room);
    if (pair === null) return null;
    pairs[at] = pair;
  }
  return pairs;
};

const filledPair = (
  [name, template]: HeaderTemplate,
  request: PolicyRequest,
  user: string,
  room: FillRoom,
): HeaderPair | null => {
  const value = headerValue(template, request, user, room);
  return value === null ? null : [name, value];
};

/** Converts text from outside to a header field value: UTF-8 bytes without control characters. */
const fieldText = (text: string): string => {
  const bytes = byteText(text);
  return isFieldValue(bytes) ? bytes : [...bytes].filter((character) => isFieldValue(character)).join('');
};

export interface RedirectTemplate {
  /** Template of scheme and host. Null for a redirect on the same host. */
  readonly origin: Template | null;
  readonly rest: Template;
}

/** Splits a redirect target. The host is literal or `{host}`, so that a visitor cannot choose another host. */
export const parseRedirectTemplate = (to: string): RedirectTemplate => {
  const origin = /^https?:\/\/(?:\{host\}|[^/?#\\{}@%])*/i.exec(to)?.[0] ?? null;
  return {
    origin: origin === null ? null : parseTemplate(origin),
    rest: parseTemplate(origin === null ? to : to.slice(origin.length)),
  };
};

/**
 * Returns the Location of a redirect. Path and query stay as received; other placeholders are percent-encoded. A target on the same host
 * starts with exactly one slash, because browsers take `//x` and `/\x` for another host. Returns null if the limit of expanded characters
 * is reached.
 */
export const redirectTarget = (
  { origin, rest }: RedirectTemplate,
  request: PolicyRequest,
  user: string,
  room: FillRoom,
): string | null => {
  const path = filled(rest, room, (name) => {
    const value = valueOf(name, request, user);
    if (name === 'path') return value.startsWith('/') ? value : '/';
    return name === 'host' || name === 'query' ? value : encodeURIComponent(wellFormed(value));
  });
  if (path === null) return null;
  if (origin === null) return `/${path.replace(/^[/\\]+/, '')}`;
  const start = filled(origin, room, (name) => valueOf(name, request, user));
  if (start === null) return null;
  return path === '' || /^[/?#]/.test(path) ? `${start}${path}` : `${start}/${path}`;
};

/** Removes unpaired surrogates, because encodeURIComponent throws on them. */
const wellFormed = (text: string): string => text.replace(/[\ud800-\udfff]/gu, '');
