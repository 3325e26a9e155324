// Converts a captured request to text for other tools: a curl command, and header lines. Pure functions.
import type { CapturedRequest } from '@tunnel/contract';

/** Formats headers as lines of an HTTP message. The edit dialog uses the same format. */
export const headerLines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');

/** Headers left out of a curl command, because they belong to a connection or curl creates them. */
const MADE_BY_CURL: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
]);

/**
 * File name for a body that cannot be part of a command: the body was not captured as text or not completely, or contains control
 * characters.
 */
const BODY_FILE = 'body.bin';

type Copied = Pick<
  CapturedRequest,
  'method' | 'path' | 'request_headers' | 'request_body' | 'request_size' | 'replayable'
>;

/**
 * Returns a curl command for a POSIX shell. `origin` is the tunnel's public URL. Redacted values stay redacted, so the user has to fill
 * them in.
 */
export const curlCommand = (request: Copied, origin: string): string => {
  const { method, path, request_headers: headers, request_size: size } = request;
  const body = request.replayable && isTypeable(request.request_body) ? request.request_body : null;
  const words = [`curl ${quoted(origin.replace(/\/+$/, '') + path)}`];
  // Without these options, curl would expand brackets to several URLs, and resolve dot segments of the path.
  if (/[[\]{}]/.test(path)) words.push('--globoff');
  if (/\/\.\.?(?:[/?]|$)/.test(path)) words.push('--path-as-is');
  if (method === 'HEAD') words.push('--head');
  else if (method !== (size > 0 ? 'POST' : 'GET')) words.push(`-X ${quoted(method)}`);
  for (const [name, value] of Object.entries(headers)) {
    if (MADE_BY_CURL.has(name) || (name === 'content-encoding' && body !== null)) continue;
    // For an empty value, curl requires a semicolon: a name followed by a colon only would remove the header.
    const line = value === '' ? `${name};` : `${name}: ${value}`;
    words.push(name === 'accept-encoding' ? '--compressed' : `-H ${quoted(line)}`);
  }
  if (size > 0) words.push(body === null ? `--data-binary @${BODY_FILE}` : `--data-raw ${quoted(body)}`);
  return words.join(' \\\n  ');
};

/**
 * Returns whether text can be pasted into a terminal safely. Control characters act as keys there: a control character could end the
 * paste, and the following text would run as a command.
 */
const isTypeable = (text: string | null): boolean => text !== null && !/[^\P{Cc}\t\r\n]/u.test(text);

const quoted = (text: string): string => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
