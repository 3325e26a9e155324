// Whole responses of our own: error pages as a page or as JSON, redirects; and their text, one character per byte.
import { eachListItem, isFieldValue, isToken } from './characters.ts';
import type { HttpVersion, RequestHead } from './request-head.ts';

type OwnHeader = readonly [name: string, value: string];

export interface EdgeResponse {
  readonly status: number;
  readonly headers: readonly OwnHeader[];
  /** One character a byte. */
  readonly body: string;
}

interface EdgeResponseOptions {
  readonly keepAlive: boolean;
  readonly visitorVersion: HttpVersion;
  /** The answer to HEAD: the head as for GET, and no body. */
  readonly isHead: boolean;
}

export const edgeResponseText = (response: EdgeResponse, options: EdgeResponseOptions): string => {
  const { status, headers, body } = response;
  let text = `HTTP/1.1 ${status} ${reasonOf(status)}\r\n`;
  for (const [name, value] of headers) {
    if (isToken(name) && isFieldValue(value)) text += `${name}: ${value}\r\n`;
  }
  const isBare = hasNoBody(status);
  // Without a length they end with their head (RFC 9110, 8.6); 205 has one of 0.
  if (!isBare) text += `content-length: ${body.length}\r\n`;
  else if (status === 205) text += 'content-length: 0\r\n';
  if (!options.keepAlive) text += 'connection: close\r\n';
  else if (options.visitorVersion === '1.0') text += 'connection: keep-alive\r\n';
  return options.isHead || isBare ? `${text}\r\n` : `${text}\r\n${body}`;
};

/** Whatever its words: a visitor would take a body for the begin of the next answer. */
export const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304;

export const reasonOf = (status: number): string => REASONS.get(status) ?? '';

const REASONS: ReadonlyMap<number, string> = new Map([
  [200, 'OK'],
  [201, 'Created'],
  [202, 'Accepted'],
  [204, 'No Content'],
  [205, 'Reset Content'],
  [301, 'Moved Permanently'],
  [302, 'Found'],
  [303, 'See Other'],
  [304, 'Not Modified'],
  [307, 'Temporary Redirect'],
  [308, 'Permanent Redirect'],
  [400, 'Bad Request'],
  [401, 'Unauthorized'],
  [402, 'Payment Required'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [406, 'Not Acceptable'],
  [408, 'Request Timeout'],
  [409, 'Conflict'],
  [410, 'Gone'],
  [413, 'Content Too Large'],
  [415, 'Unsupported Media Type'],
  [418, "I'm a teapot"],
  [421, 'Misdirected Request'],
  [422, 'Unprocessable Content'],
  [429, 'Too Many Requests'],
  [431, 'Request Header Fields Too Large'],
  [451, 'Unavailable For Legal Reasons'],
  [500, 'Internal Server Error'],
  [501, 'Not Implemented'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [504, 'Gateway Timeout'],
  [505, 'HTTP Version Not Supported'],
  [507, 'Insufficient Storage'],
]);

/** `plain_http = "redirect"`: the same request, over TLS. 308 keeps method and body. Host and path come from a parsed head, so neither can end the line or lead elsewhere. */
export const redirectToHttps = (head: Pick<RequestHead, 'host' | 'path'>, httpsPort: number): EdgeResponse => {
  const port = httpsPort === 443 ? '' : `:${httpsPort}`;
  const path = head.path === '*' ? '/' : head.path;
  return { status: 308, headers: [['location', `https://${head.host}${port}${path}`]], body: '' };
};

/**
 * A browser that opens the front page of the edge's domain is sent to `url`, where the platform has its pages. Every other request gets
 * null: programs, other paths and methods, and a request for the host of `url` itself, which would be sent round in a circle.
 */
export const redirectToPages = (
  head: Pick<RequestHead, 'method' | 'path' | 'authority' | 'headers'>,
  url: string,
): EdgeResponse | null => {
  if ((head.method !== 'GET' && head.method !== 'HEAD') || head.path !== '/') return null;
  if (!head.headers.some(({ lower, value }) => lower === 'accept' && namesPage(value))) return null;
  // A proxy in front may end TLS, so the scheme that the edge sees says nothing: host and port alone tell whether it is the same server.
  if (hostAndPort(`http://${head.authority}`) === hostAndPort(url)) return null;
  return {
    status: 302,
    headers: [
      ['location', url],
      ['cache-control', 'no-store'],
      ['vary', 'accept'],
    ],
    body: '',
  };
};

const namesPage = (accept: string): boolean => {
  let isNamed = false;
  eachListItem(accept.toLowerCase(), (range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (type === 'text/html' && weightOf(parameters) > 0) isNamed = true;
  });
  return isNamed;
};

/** Host and port, the usual ports of http and https left out. */
const hostAndPort = (url: string): string =>
  url
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/[/?#].*$/s, '')
    .replace(/:(?:80|443)?$/, '')
    .replace(/\.(?=:|$)/, '');

/** What a visitor reads when the edge answers itself: what happened and who can fix it, as a small page or as JSON. */
export interface ErrorWords {
  readonly code: string;
  readonly status: number;
  /** What happened; the catalogue's text. */
  readonly message: string;
  /** Who can do what about it. */
  readonly next: string;
  /** The request's Accept; null: none, or no request could be read. */
  readonly accept: string | null;
  readonly requestId?: string | undefined;
  readonly retryAfterSecs?: number | undefined;
  /** On the page alone. */
  readonly button?: PageButton | undefined;
}

interface RenderedError extends EdgeResponse {
  readonly contentType: string;
}

export const renderError = (words: ErrorWords): RenderedError => {
  const isJson = prefersJson(words.accept);
  const contentType = isJson ? 'application/json' : 'text/html; charset=utf-8';
  const headers: OwnHeader[] = [
    ['content-type', contentType],
    ['x-tunnel-error', words.code],
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
    ['vary', 'accept'],
  ];
  // The page loads nothing, so that a text in it could do nothing even if it were taken for markup.
  if (!isJson) headers.push(['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'"]);
  if (words.requestId !== undefined) headers.push(['x-request-id', words.requestId]);
  if (words.retryAfterSecs !== undefined) headers.push(['retry-after', String(Math.ceil(words.retryAfterSecs))]);
  return { status: words.status, contentType, headers, body: isJson ? jsonOf(words) : pageOf(words) };
};

const jsonOf = ({ code, message, next, requestId }: ErrorWords): string => {
  const fields = { error: message, code, next, ...(requestId === undefined ? {} : { request_id: requestId }) };
  // ASCII, so that characters and bytes are the same number.
  return `${JSON.stringify(fields).replace(/[^\x20-\x7e]|</g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;
};

const pageOf = (words: ErrorWords): string => {
  const title = `${words.status} ${reasonOf(words.status)}`.trim();
  const request = words.requestId === undefined ? '' : ` &middot; request ${escaped(words.requestId)}`;
  return pageText({
    title,
    heading: words.message,
    text: words.next,
    button: words.button,
    foot: `${escaped(words.code)}${request}`,
  });
};

/** A form of nothing but its button. */
export interface PageButton {
  readonly action: string;
  readonly label: string;
}

interface PageWords {
  readonly title: string;
  readonly heading: string;
  readonly text: string;
  readonly button?: PageButton | undefined;
  /** Markup. */
  readonly foot?: string | undefined;
}

/** Every page of the edge: ASCII, small, and it loads nothing. */
export const pageText = ({ title, heading, text, button, foot }: PageWords): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<p class="status">${escaped(title)}</p>
<h1>${escaped(sentence(heading))}</h1>
<p>${withCode(escaped(sentence(text)))}</p>
${button === undefined ? '' : buttonMarkup(button)}${foot === undefined ? '' : `<p class="code">${foot}</p>\n`}</main>
</body>
</html>
`;

const buttonMarkup = ({ action, label }: PageButton): string =>
  `<form method="post" action="${escaped(action)}"><button type="submit">${escaped(label)}</button></form>\n`;

const STYLE = [
  ':root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--paper:#f7f8fa}',
  '@media (prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#9aa5b4;--paper:#14181f}}',
  'body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);',
  'font:16px/1.6 system-ui,sans-serif}main{max-width:34rem;padding:2rem}',
  'h1{font-size:1.4rem;line-height:1.35;margin:0 0 .75rem;overflow-wrap:anywhere}p{margin:0 0 .75rem;overflow-wrap:anywhere}',
  '.status,.code{color:var(--soft);font-size:.875rem}.code{margin-top:1.5rem;font-family:ui-monospace,monospace}',
  'code{font-family:ui-monospace,monospace;font-size:.9em}',
  'button{font:inherit;color:inherit;background:none;border:1px solid var(--soft);border-radius:.4rem;padding:.4rem 1rem;cursor:pointer}',
].join('');

/** Texts of the catalogue begin with a small letter and have no full stop, because they are also printed after `error: `. An email address stays as it is. */
const sentence = (text: string): string => {
  const [first = '', ...rest] = text;
  const begin = /^\S+@/.test(text) ? first : first.toUpperCase();
  return `${begin}${rest.join('')}${/[.!?]$/.test(text) ? '' : '.'}`;
};

/** ASCII only, whatever is in the text: markup, quotes and every other character become references. */
const escaped = (text: string): string =>
  text.replace(/[&<>"']|[^\x20-\x7e]/gu, (character) => `&#${character.codePointAt(0)};`);

/** Between backticks the catalogue has what is typed. */
const withCode = (markup: string): string => markup.replace(/`([^`]+)`/g, '<code>$1</code>');

/**
 * Whether the visitor would rather read JSON than a page (RFC 9110, 12.5.1, as far as two answers need it).
 * A page unless JSON is named and no page is wanted as much: browsers name text/html, programs that name nothing get a page, too.
 */
const prefersJson = (accept: string | null): boolean => {
  if (accept === null) return false;
  let json = 0;
  let page = 0;
  eachListItem(accept.toLowerCase(), (range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = weightOf(parameters);
    if (type === 'application/json' || type.endsWith('+json')) json = Math.max(json, weight);
    else if (type === 'text/html' || type === 'application/xhtml+xml') page = Math.max(page, weight);
  });
  return json > page;
};

const weightOf = (parameters: readonly string[]): number => {
  const given = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = given === undefined ? 1 : Number(given.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
};
