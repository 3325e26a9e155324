// `{address} {host} {path} {query} {user} {request_id}` in values of headers and in the target of a redirect: read once, filled for each request.
import { isFieldValue } from '@tunnel/http1';
import type { HeaderPair, PolicyRequest } from '../policy-step.ts';
import { byteText } from '../text/bytes.ts';

const PLACEHOLDERS = ['address', 'host', 'path', 'query', 'user', 'request_id'] as const;
type Placeholder = (typeof PLACEHOLDERS)[number];

const isPlaceholder = (name: string): name is Placeholder => (PLACEHOLDERS as readonly string[]).includes(name);

/** Texts and placeholders in turn; most have no placeholder and are one text. */
export type Template = string | readonly (string | { readonly fill: Placeholder })[];

/** What is no placeholder stands for itself: the schema refuses unknown ones before. */
export const templateOf = (text: string): Template => {
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
  // In an array of just that length: it is kept as long as its policy.
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

/** Characters that placeholders may still become in one request: a path may have all of a head, and a value can name it hundreds of times. */
export interface FillRoom {
  fillLeft: number;
}

/** null: there is no room for it. */
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

/** As a header's value: one character per byte, and nothing that ends a line. null: there is no room for it. */
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

/** Nobody becomes somebody else by what a field cannot hold: control characters, and blanks at its ends, are percent-encoded. */
export const userText = (user: string): string => {
  if (isPlain(user)) return user;
  const bare = user.trim();
  const at = user.indexOf(bare);
  const inner = bare.replace(/[\u0000-\u001f\u007f]/g, encodeURIComponent);
  return fieldText(
    `${encodeURIComponent(user.slice(0, at))}${inner}${encodeURIComponent(user.slice(at + bare.length))}`,
  );
};

/** Most are: visible ASCII, and blanks within. */
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

/** One without placeholders is the rule's own. null: there is no room for all of them. */
export const headerPairs = (
  templates: readonly HeaderTemplate[],
  request: PolicyRequest,
  user: string,
  room: FillRoom,
): readonly HeaderPair[] | null => {
  if (templates.length === 0) return NONE;
  // Of just that length, as captures keep them.
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

/** A text from outside as a field may have it: UTF-8, without control characters. */
const fieldText = (text: string): string => {
  const bytes = byteText(text);
  return isFieldValue(bytes) ? bytes : [...bytes].filter((character) => isFieldValue(character)).join('');
};

export interface RedirectTemplate {
  /** Scheme and host; null: the same. */
  readonly origin: Template | null;
  readonly rest: Template;
}

/** A host is literal or `{host}`: nothing else that a visitor says can become a part of it. */
export const redirectTemplateOf = (to: string): RedirectTemplate => {
  const origin = /^https?:\/\/(?:\{host\}|[^/?#\\{}@%])*/i.exec(to)?.[0] ?? null;
  return {
    origin: origin === null ? null : templateOf(origin),
    rest: templateOf(origin === null ? to : to.slice(origin.length)),
  };
};

/**
 * The target of a redirect. Path and query are as they came; the rest is percent-encoded.
 * On the same host it begins with one slash: `//x` and `/\x` are other hosts to a browser. null: there is no room for it.
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

/** Half a pair of surrogates cannot be percent-encoded. */
const wellFormed = (text: string): string => text.replace(/[\ud800-\udfff]/gu, '');
