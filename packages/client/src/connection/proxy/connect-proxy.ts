// Tunnels a connection through an HTTP proxy with CONNECT. No bytes after the response head are consumed, since they come from the server.
import type { Socket } from 'node:net';
import type { ServerAddress } from '../../network/endpoint.ts';
import type { Proxy, ProxyCredentials } from './proxy-address.ts';
import { PROXY_WORDS_MAX_CHARS, proxyAuthFault, proxyRefused } from './proxy-faults.ts';

/** Maximum size of a proxy's response head to CONNECT. */
const PROXY_HEAD_MAX_BYTES = 16 * 1024;

/**
 * Sends CONNECT on a socket to the proxy; afterwards the socket leads to `target`. Bytes after the head are pushed back, because they come
 * from the server. Rejects with a Fault for an error response, or with an Error without a response. The caller must destroy the socket.
 */
export const connectThrough = async (socket: Socket, proxy: Proxy, target: ServerAddress): Promise<void> => {
  const answer = readHead(socket);
  socket.write(requestHead(proxy, target));
  const { status, words, headers, rest } = await answer;
  if (status === 407) throw proxyAuthFault(proxy, schemesOf(headers));
  if (status < 200 || status > 299) {
    const said = /^text\/plain\b/i.test(headers.find(([name]) => name === 'content-type')?.[1] ?? '');
    const more = said ? `: ${rest.toString('latin1', 0, PROXY_WORDS_MAX_CHARS)}` : '';
    throw proxyRefused(proxy, target, `the response was ${status} ${words}${more}`);
  }
  if (rest.length > 0) socket.unshift(rest);
};

const requestHead = ({ credentials }: Proxy, { text }: ServerAddress): string =>
  [
    `CONNECT ${text} HTTP/1.1`,
    `Host: ${text}`,
    'User-Agent: tunnel',
    ...(credentials === null ? [] : [`Proxy-Authorization: Basic ${basic(credentials)}`]),
    '\r\n',
  ].join('\r\n');

const basic = ({ user, password }: ProxyCredentials): string =>
  Buffer.from(`${user.reveal()}:${password.reveal()}`, 'utf8').toString('base64');

interface ProxyAnswer {
  readonly status: number;
  readonly words: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly rest: Buffer;
}

const END = Buffer.from('\r\n\r\n', 'latin1');
/** Status line of a proxy's response. Accepts HTTP/1.0 too, as used by old proxies. */
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: (.*))?$/;
const BEGIN = 'HTTP/1.';

/**
 * Reads with `readable` events instead of `data`: a socket that was paused once would wait for a resume() that its next reader does not
 * call.
 */
const readHead = (socket: Socket): Promise<ProxyAnswer> =>
  new Promise((resolve, reject) => {
    let seen: Buffer = Buffer.alloc(0);
    const settle = (): void => {
      socket.off('readable', onReadable).off('error', fail).off('close', onClose).off('end', onClose);
    };
    const fail = (error: Error): void => {
      settle();
      reject(error);
    };
    const onClose = (): void => fail(new Error('the proxy closed the connection without a response'));
    const onReadable = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      let searchFrom = Math.max(0, seen.length - END.length + 1);
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      for (;;) {
        // Fails early, because a peer that does not speak HTTP may never end the head.
        if (!BEGIN.startsWith(seen.toString('latin1', 0, BEGIN.length))) {
          return fail(new Error('the proxy does not speak HTTP'));
        }
        const end = seen.indexOf(END, searchFrom);
        if ((end < 0 ? seen.length : end) > PROXY_HEAD_MAX_BYTES) {
          return fail(new Error('the response headers are too long'));
        }
        if (end < 0) return;
        const head = parseHead(seen.toString('latin1', 0, end));
        if (head === null) return fail(new Error('the proxy does not speak HTTP'));
        const rest = seen.subarray(end + END.length);
        if (!isInterim(head.status)) {
          settle();
          return resolve({ ...head, rest });
        }
        [seen, searchFrom] = [rest, 0];
      }
    };
    socket.on('readable', onReadable).on('error', fail).on('close', onClose).on('end', onClose);
  });

/** Returns true if another response follows, as after interim responses. 101 is final. */
const isInterim = (status: number): boolean => status >= 100 && status < 200 && status !== 101;

/** Parses the status line and the headers. Malformed headers are tolerated, because only the status matters. */
const parseHead = (text: string): Omit<ProxyAnswer, 'rest'> | null => {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const [, status, words = ''] = STATUS_LINE.exec(statusLine) ?? [];
  if (status === undefined) return null;
  const headers = lines.map((line): [string, string] => {
    const colon = Math.max(line.indexOf(':'), 0);
    return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status: Number(status), words, headers };
};

/**
 * Returns the authentication schemes of a proxy. A header line can hold several challenges with parameters: a scheme is a word not followed
 * by `=`. Commas within quotes do not separate.
 */
const schemesOf = (headers: ProxyAnswer['headers']): string[] =>
  headers
    .filter(([name]) => name === 'proxy-authenticate')
    .flatMap(([, value]) => value.replace(/"(?:[^"\\]|\\.)*"/g, '""').split(','))
    .flatMap((part) => /^\s*([^\s=]+)(?!\s*=)(?:\s|$)/.exec(part)?.[1] ?? []);
