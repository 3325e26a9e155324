// One look at a local service: a connection, one deadline over all of it, one verdict in words for people.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '@tunnel/runtime';
import { isCertificateTrouble, reasonOf } from '../dial-faults.ts';
import { dialReason, type LocalTarget } from '../forward/dial-local.ts';

export type ProbeResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Aborting ends it at once; what it then settles with means nothing. Never rejects. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult>;

export interface ProbeOptions {
  readonly target: LocalTarget;
  /** For everything together: connecting, TLS, asking, the answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export interface Conversation extends ProbeOptions {
  readonly signal: AbortSignal;
  /** The connection is open, with its TLS. `done` may be called as often as it likes; the first time counts. */
  readonly talk: (socket: Socket, done: (result: ProbeResult) => void) => void;
}

export const GOOD: ProbeResult = { ok: true };

export const bad = (reason: string): ProbeResult => ({ ok: false, reason });

export const converse = (conversation: Conversation): Promise<ProbeResult> =>
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
    const onAbort = (): void => done(bad('it was stopped'));
    const timer = clock.setTimeout(() => done(bad(`no answer within ${Math.round(timeoutMs) / 1000} s`)), timeoutMs);
    signal.addEventListener('abort', onAbort, { once: true });
    // It stays: a socket that is being destroyed may complain once more.
    socket.on('error', (error) => done(bad(reasonOfError(error))));
    socket.once('close', () => done(bad('the connection was closed before an answer')));
    socket.once(target.tls === null ? 'connect' : 'secureConnect', () => talk(socket, done));
    if (signal.aborted) onAbort();
  });

const open = ({ host, port, tls }: LocalTarget): Socket => {
  if (tls === null) return connectPlain({ host, port, noDelay: true });
  return connectTls({
    host,
    port,
    // An address has no place in SNI (RFC 6066, section 3).
    ...(isIP(host) === 0 ? { servername: host } : {}),
    rejectUnauthorized: tls.verify,
    ALPNProtocols: ['http/1.1'],
  });
};

const reasonOfError = (error: Error): string =>
  isCertificateTrouble(error) ? `its certificate was not accepted: ${reasonOf(error)}` : dialReason(error);
