// Complete responses by the edge: error pages as HTML or JSON, and redirects. Texts have one character per byte.
import { eachListItem, isFieldValue, isToken } from './characters.ts';
import type { HttpVersion, RequestHead } from './request-head.ts';

type OwnHeader = readonly [name: string, value: string];

export interface EdgeResponse {
  readonly status: number;
  readonly headers: readonly OwnHeader[];
  /** Response body, one character per byte. */
  readonly body: string;
}

interface EdgeResponseOptions {
  readonly keepAlive: boolean;
  readonly visitorVersion: HttpVersion;
  /** True for a response to HEAD: the head is the same as for GET, and the body is omitted. */
  readonly isHead: boolean;
}

export const edgeResponseText = (response: EdgeResponse, options: EdgeResponseOptions): string => {
  const { status, headers, body } = response;
  let text = `HTTP/1.1 ${status} ${reasonOf(status)}\r\n`;
  for (const [name, value] of headers) {
    if (isToken(name) && isFieldValue(value)) text += `${name}: ${value}\r\n`;
  }
  const isBare = hasNoBody(status);
  // Responses without a length end with their head (RFC 9110, 8.6); only 205 has a length of 0.
  if (!isBare) text += `content-length: ${body.length}\r\n`;
  else if (status === 205) text += 'content-length: 0\r\n';
  if (!options.keepAlive) text += 'connection: close\r\n';
  else if (options.visitorVersion === '1.0') text += 'connection: keep-alive\r\n';
  return options.isHead || isBare ? `${text}\r\n` : `${text}\r\n${body}`;
};

/** Returns true for a status that never has a body. A visitor would mistake a body for the start of the next response. */
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

/**
 * Redirects a request to the same URL over https, for `plain_http = "redirect"`. Status 308 preserves method and body. Host and path come
 * from a parsed head, so neither can end the header line or change the target.
 */
export const redirectToHttps = (head: Pick<RequestHead, 'host' | 'path'>, httpsPort: number): EdgeResponse => {
  const port = httpsPort === 443 ? '' : `:${httpsPort}`;
  const path = head.path === '*' ? '/' : head.path;
  return { status: 308, headers: [['location', `https://${head.host}${port}${path}`]], body: '' };
};

/**
 * Redirects a browser that opens the front page of the edge's domain to `url`, where the platform has its pages. Returns null for every
 * other request: from programs, for other paths or methods, and for the host of `url` itself, which would cause a redirect loop.
 */
export const redirectToPages = (
  head: Pick<RequestHead, 'method' | 'path' | 'authority' | 'headers'>,
  url: string,
): EdgeResponse | null => {
  if ((head.method !== 'GET' && head.method !== 'HEAD') || head.path !== '/') return null;
  if (!head.headers.some(({ lower, value }) => lower === 'accept' && namesPage(value))) return null;
  // Compare only host and port: a proxy in front of the edge may end TLS, so the scheme seen by the edge proves nothing.
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

/** Returns host and port of a URL, without the default ports of http and https. */
const hostAndPort = (url: string): string =>
  url
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/[/?#].*$/s, '')
    .replace(/:(?:80|443)?$/, '')
    .replace(/\.(?=:|$)/, '');

/** Content of an error response by the edge: what happened and who can fix the problem, as a small page or as JSON. */
export interface ErrorWords {
  readonly code: string;
  readonly status: number;
  /** Description of the error from the catalogue. */
  readonly message: string;
  /** Next step, and the person who can take it. */
  readonly next: string;
  /** Accept header of the request, or null if the request has no Accept header or could not be parsed. */
  readonly accept: string | null;
  readonly requestId?: string | undefined;
  readonly retryAfterSecs?: number | undefined;
  /** Button, shown only on the HTML page. */
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
  // The page loads nothing, so that injected text could do no harm even if it were interpreted as markup.
  if (!isJson) headers.push(['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'"]);
  if (words.requestId !== undefined) headers.push(['x-request-id', words.requestId]);
  if (words.retryAfterSecs !== undefined) headers.push(['retry-after', String(Math.ceil(words.retryAfterSecs))]);
  return { status: words.status, contentType, headers, body: isJson ? jsonOf(words) : pageOf(words) };
};

const jsonOf = ({ code, message, next, requestId }: ErrorWords): string => {
  const fields = { error: message, code, next, ...(requestId === undefined ? {} : { request_id: requestId }) };
  // Escape to ASCII, so that the number of characters equals the number of bytes.
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

/** Button on an error page: a form without input fields. */
export interface PageButton {
  readonly action: string;
  readonly label: string;
}

interface PageWords {
  readonly title: string;
  readonly heading: string;
  readonly text: string;
  readonly button?: PageButton | undefined;
  /** Footer of the page, as HTML markup. */
  readonly foot?: string | undefined;
}

/** Renders an HTML page of the edge. Pages are small, consist of ASCII, and load nothing. */
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

/**
 * Makes a sentence of a catalogue text. Catalogue texts start with a lower-case letter and have no full stop, because they also follow
 * `error: ` in the terminal. An email address at the start keeps its case.
 */
const sentence = (text: string): string => {
  const [first = '', ...rest] = text;
  const begin = /^\S+@/.test(text) ? first : first.toUpperCase();
  return `${begin}${rest.join('')}${/[.!?]$/.test(text) ? '' : '.'}`;
};

/** Escapes a text for HTML. Markup characters, quotes and all characters beyond ASCII become character references. */
const escaped = (text: string): string =>
  text.replace(/[&<>"']|[^\x20-\x7e]/gu, (character) => `&#${character.codePointAt(0)};`);

/** Converts text between backticks, which mark literal input in the catalogue, to `<code>` elements. */
const withCode = (markup: string): string => markup.replace(/`([^`]+)`/g, '<code>$1</code>');

/**
 * Returns true if the visitor prefers JSON to HTML (a subset of RFC 9110, 12.5.1, sufficient for two representations). JSON must be named
 * and weighted higher than HTML: browsers name text/html, and programs that name neither get HTML.
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
