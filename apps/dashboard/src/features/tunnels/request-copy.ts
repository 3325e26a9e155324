// A captured request as text to take elsewhere: a curl command, and header lines. Pure.
import type { CapturedRequest } from '@tunnel/contract';

/** As they stand in a message; also how they are edited. */
export const headerLines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');

/** Of a connection, or made by curl itself. */
const MADE_BY_CURL: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
]);

/** It was not kept as text or not whole, or cannot be typed: it has to be a file. */
const BODY_FILE = 'body.bin';

type Copied = Pick<
  CapturedRequest,
  'method' | 'path' | 'request_headers' | 'request_body' | 'request_size' | 'replayable'
>;

/** For a POSIX shell. `origin`: the public URL. Hidden values stay hidden: whoever runs it writes them in. */
export const curlCommand = (request: Copied, origin: string): string => {
  const { method, path, request_headers: headers, request_size: size } = request;
  const body = request.replayable && isTypeable(request.request_body) ? request.request_body : null;
  const words = [`curl ${quoted(origin.replace(/\/+$/, '') + path)}`];
  // Else curl would take brackets for a pattern of many URLs, and dots for a way up.
  if (/[[\]{}]/.test(path)) words.push('--globoff');
  if (/\/\.\.?(?:[/?]|$)/.test(path)) words.push('--path-as-is');
  if (method === 'HEAD') words.push('--head');
  else if (method !== (size > 0 ? 'POST' : 'GET')) words.push(`-X ${quoted(method)}`);
  for (const [name, value] of Object.entries(headers)) {
    if (MADE_BY_CURL.has(name) || (name === 'content-encoding' && body !== null)) continue;
    // A name with nothing behind its colon would tell curl to leave the field out.
    const line = value === '' ? `${name};` : `${name}: ${value}`;
    words.push(name === 'accept-encoding' ? '--compressed' : `-H ${quoted(line)}`);
  }
  if (size > 0) words.push(body === null ? `--data-binary @${BODY_FILE}` : `--data-raw ${quoted(body)}`);
  return words.join(' \\\n  ');
};

/** In a terminal other control characters are keys: one of them could end the paste, and what follows would be a command. */
const isTypeable = (text: string | null): boolean => text !== null && !/[^\P{Cc}\t\r\n]/u.test(text);

const quoted = (text: string): string => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
