// A single health check of a local service: one connection, one overall timeout, and a result with a readable reason.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '@tunnel/runtime';
import { isCertificateTrouble, reasonOf } from '../network/dial-faults.ts';
import { dialAddressOf, dialReason } from './local-service.ts';
import type { DialTarget } from './local-target.ts';

/** Maximum bytes read of a health check's response. Only the status line is needed. */
const PROBE_STATUS_LINE_MAX_BYTES = 4 * 1024;

export type ProbeResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Probes a service. Never rejects. Aborting ends the probe immediately; the result is meaningless then. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult>;

export interface ProbeOptions {
  readonly target: DialTarget;
  /** Timeout of a health check, for connecting, TLS, request and response together. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

interface Conversation extends ProbeOptions {
  readonly signal: AbortSignal;
  /** Called when the connection is open, including TLS. Only the first call of `done` counts. */
  readonly talk: (socket: Socket, done: (result: ProbeResult) => void) => void;
}

const GOOD: ProbeResult = { ok: true };

const bad = (reason: string): ProbeResult => ({ ok: false, reason });

const converse = (conversation: Conversation): Promise<ProbeResult> =>
  hold(conversation).catch((error: unknown) => bad(reasonOf(error)));

/** Runs one conversation and destroys the connection afterwards. Rejects for targets that Node refuses to dial. */
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
    // The socket's error listener stays attached, because a destroyed socket may emit another error.
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
    // SNI must not contain an IP address (RFC 6066, section 3).
    ...('host' in address && isIP(address.host) === 0 ? { servername: address.host } : {}),
    rejectUnauthorized: tls.verify,
    ALPNProtocols: ['http/1.1'],
  });
};

const reasonOfError = (error: Error): string =>
  isCertificateTrouble(error) ? `certificate not accepted: ${reasonOf(error)}` : dialReason(error);

/** Succeeds if a connection opens. Protocol and TLS of the service do not matter. */
export const tcpProbe =
  ({ target, ...options }: ProbeOptions): Probe =>
  (signal) =>
    converse({ ...options, target: { ...target, tls: null }, signal, talk: (_socket, done) => done(GOOD) });

export interface HttpProbeOptions extends ProbeOptions {
  readonly path: string;
  /** Address of the local service for the Host header of the health check. */
  readonly localAddress: string;
  /** False accepts any status of the response as healthy. */
  readonly expect2xx: boolean;
}

/** Sends a GET request and reads only the status line of the response. */
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

/** Builds an HTTP/1.0 request, so that the response has no chunks and no interim responses, and the service closes the connection. */
const requestText = ({ path, localAddress }: HttpProbeOptions): string =>
  [
    `GET ${inAscii(path)} HTTP/1.0`,
    `Host: ${localAddress}`,
    'User-Agent: tunnel-probe',
    'Connection: close',
    '',
    '',
  ].join('\r\n');

/** Percent-encodes the path of a health check as browsers do. */
const inAscii = (path: string): string =>
  Buffer.from(path, 'utf8')
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

/** Calls `tell` with the status once the line is complete, or with null if the data is no status line. */
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
 * Parses the first line of an HTTP/1 response as strictly as the edge, so that a service accepted by the probe also works for visitors.
 * `text` is the data received so far, one character per byte.
 */
export const readStatusLine = (text: string): StatusLine => {
  const end = text.indexOf('\n');
  if (end >= 0) {
    const status = WHOLE.exec(text.slice(0, end))?.[1];
    return status === undefined ? 'not-http' : { status: Number(status) };
  }
  // Fails early if the response cannot begin with a status line.
  const isPromising = BEGINNING.startsWith(text.slice(0, BEGINNING.length));
  return isPromising && text.length < PROBE_STATUS_LINE_MAX_BYTES ? 'unfinished' : 'not-http';
};
