// One look at a local service: a connection, one deadline over all of it, one verdict in words for people.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '@tunnel/runtime';
import { isCertificateTrouble, reasonOf } from '../network/dial-faults.ts';
import { dialAddressOf, dialReason } from './local-service.ts';
import type { DialTarget } from './local-target.ts';

/** a health check reads no more of an answer than its status line */
const PROBE_STATUS_LINE_MAX_BYTES = 4 * 1024;

export type ProbeResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Aborting ends it at once; what it then settles with means nothing. Never rejects. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult>;

export interface ProbeOptions {
  readonly target: DialTarget;
  /** For everything together: connecting, TLS, asking, the answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

interface Conversation extends ProbeOptions {
  readonly signal: AbortSignal;
  /** The connection is open, with its TLS. `done` may be called as often as it likes; the first time counts. */
  readonly talk: (socket: Socket, done: (result: ProbeResult) => void) => void;
}

const GOOD: ProbeResult = { ok: true };

const bad = (reason: string): ProbeResult => ({ ok: false, reason });

const converse = (conversation: Conversation): Promise<ProbeResult> =>
  hold(conversation).catch((error: unknown) => bad(reasonOf(error)));

/** Rejects for what node refuses to dial at all. Nothing is left of the connection when it settles. */
const hold = ({ target, timeoutMs, clock, signal, talk }: Conversation): Promise<ProbeResult> =>
  new Promise((resolve) => {
    const socket = open(target);
    const done = (result: ProbeResult): void => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(result);
    };
    const onAbort = (): void => done(bad('stopped'));
    const timer = clock.setTimeout(() => done(bad(`no response within ${Math.round(timeoutMs) / 1000} s`)), timeoutMs);
    signal.addEventListener('abort', onAbort, { once: true });
    // It stays: a socket that is being destroyed may complain once more.
    socket.on('error', (error) => done(bad(reasonOfError(error))));
    socket.once('close', () => done(bad('the connection was closed before a response')));
    socket.once(target.tls === null ? 'connect' : 'secureConnect', () => talk(socket, done));
    if (signal.aborted) onAbort();
  });

const open = (target: DialTarget): Socket => {
  const address = dialAddressOf(target);
  const { tls } = target;
  if (tls === null) return connectPlain({ ...address, noDelay: true });
  return connectTls({
    ...address,
    // An address has no place in SNI (RFC 6066, section 3).
    ...('host' in address && isIP(address.host) === 0 ? { servername: address.host } : {}),
    rejectUnauthorized: tls.verify,
    ALPNProtocols: ['http/1.1'],
  });
};

const reasonOfError = (error: Error): string =>
  isCertificateTrouble(error) ? `certificate not accepted: ${reasonOf(error)}` : dialReason(error);

/** A connection that opens is enough. What the service would speak on it does not matter, TLS neither. */
export const tcpProbe =
  ({ target, ...options }: ProbeOptions): Probe =>
  (signal) =>
    converse({ ...options, target: { ...target, tls: null }, signal, talk: (_socket, done) => done(GOOD) });

export interface HttpProbeOptions extends ProbeOptions {
  readonly path: string;
  /** Of the service, as a Host header names it. */
  readonly localAddress: string;
  /** false: any answer will do. */
  readonly expect2xx: boolean;
}

/** One GET, of whose answer only the status line is read. */
export const httpProbe = (options: HttpProbeOptions): Probe => {
  const request = requestText(options);
  return (signal) =>
    converse({
      ...options,
      signal,
      talk: (socket, done) => {
        socket.write(request, 'latin1');
        listen(socket, (status) => done(status === null ? bad('the response is not HTTP/1') : judge(status, options)));
      },
    });
};

/** HTTP/1.0: no answer in chunks, no interim answers, and the service closes by itself. */
const requestText = ({ path, localAddress }: HttpProbeOptions): string =>
  [
    `GET ${inAscii(path)} HTTP/1.0`,
    `Host: ${localAddress}`,
    'User-Agent: tunnel-probe',
    'Connection: close',
    '',
    '',
  ].join('\r\n');

/** As a browser would send it. */
const inAscii = (path: string): string =>
  Buffer.from(path, 'utf8')
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

/** Tells the status as soon as its line is whole; null for what is no status line. */
const listen = (socket: Socket, tell: (status: number | null) => void): void => {
  let text = '';
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1');
    const line = readStatusLine(text);
    if (line === 'unfinished') return;
    tell(line === 'not-http' ? null : line.status);
  });
};

const judge = (status: number, { expect2xx }: HttpProbeOptions): ProbeResult =>
  !expect2xx || (status >= 200 && status < 300) ? GOOD : bad(`status ${status}`);

export type StatusLine = { readonly status: number } | 'unfinished' | 'not-http';

const WHOLE = /^HTTP\/1\.[01] ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r$/;
const BEGINNING = 'HTTP/1.';

/**
 * The first line of an HTTP/1 answer, as strictly as the edge reads it: what a probe accepts, visitors get too.
 * `text`: what has come so far, one character per byte.
 */
export const readStatusLine = (text: string): StatusLine => {
  const end = text.indexOf('\n');
  if (end >= 0) {
    const status = WHOLE.exec(text.slice(0, end))?.[1];
    return status === undefined ? 'not-http' : { status: Number(status) };
  }
  // What cannot become a status line any more is not waited for.
  const isPromising = BEGINNING.startsWith(text.slice(0, BEGINNING.length));
  return isPromising && text.length < PROBE_STATUS_LINE_MAX_BYTES ? 'unfinished' : 'not-http';
};
