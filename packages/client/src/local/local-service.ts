// Dials the local service of a tunnel, explains failures, and joins the service with a visitor's stream.
import { Fault } from '@tunnel/errors';
import {
  type ByteDuplex,
  connectSocket,
  connectTlsSocket,
  type Guarded,
  type MuxStream,
  type Splice,
  splice,
} from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { codeOf, isCertificateTrouble, reasonOf } from '../network/dial-faults.ts';
import type { DialTarget, LocalTarget } from './local-target.ts';
import type { Traffic } from './traffic.ts';

/**
 * Timeout for connecting to a local service.
 * @limit tunnels: Connection to the local service, time to connect | HTTP visitors get 502 `LOCAL_UNREACHABLE`
 */
export const LOCAL_DIAL_TIMEOUT_MS = 10_000;

/** A failed dial of the local service, with a fault for the owner and a stream reason for the edge. */
export class DialFailed extends Error {
  readonly fault: Fault;
  readonly refusal: StreamReason;

  constructor(fault: Fault, code: 'dial-refused' | 'dial-timeout') {
    super(fault.message, { cause: fault });
    this.fault = fault;
    this.refusal = { code, text: fault.message };
  }
}

export type DialLocal = (target: LocalTarget, clock: Clock) => Promise<ByteDuplex>;

/** Connects to the local service. Rejects with DialFailed. */
export const dialLocal: DialLocal = async (target, clock) => {
  try {
    return await connectLocal(target, clock);
  } catch (error) {
    throw dialFailed(target, error);
  }
};

/** Connects to the local service. Rejects with Node's error. */
const connectLocal = (target: LocalTarget, clock: Clock): Promise<ByteDuplex> => {
  if (target.kind === 'files') return target.folder.dial();
  const address = dialAddressOf(target);
  const timeoutMs = LOCAL_DIAL_TIMEOUT_MS;
  if (target.tls === null) return connectSocket({ ...address, timeoutMs, clock });
  return connectTlsSocket({ ...address, timeoutMs, clock, verify: target.tls.verify });
};

const dialFailed = (target: LocalTarget, error: unknown): DialFailed =>
  new DialFailed(localFault(target, error), codeOf(error) === 'ETIMEDOUT' ? 'dial-timeout' : 'dial-refused');

/** Returns the address of the local service in the form of Node's socket options. */
export const dialAddressOf = (
  target: DialTarget,
): { readonly host: string; readonly port: number } | { readonly path: string } =>
  target.kind === 'socket' ? { path: target.path } : { host: target.host, port: target.port };

/** Converts an error of connecting to the local service into a Fault. */
export const localFault = (local: LocalTarget, error: unknown): Fault => {
  if (local.kind === 'files') {
    return new Fault('CLIENT_LOCAL_FILES', { dir: local.folder.dir, reason: reasonOf(error) }, { cause: error });
  }
  const target = local.kind === 'socket' ? `unix:${local.path}` : `${local.host}:${local.port}`;
  if (local.tls !== null && isCertificateTrouble(error)) {
    const reason = `${reasonOf(error)} (${codeOf(error)})`;
    return new Fault('CLIENT_LOCAL_CERTIFICATE', { target, reason }, { cause: error });
  }
  return new Fault('CLIENT_LOCAL_DIAL', { target, reason: dialReason(error) }, { cause: error });
};

/** Returns the reason of a dial error. OpenSSL's messages for a plain-text server are replaced, because they are misleading. */
export const dialReason = (error: unknown): string =>
  /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/.test(codeOf(error))
    ? 'the service does not speak TLS'
    : reasonOf(error);

export interface ForwardHandlers extends Guarded {
  /** Clock for the timeout of connecting to the local service. */
  readonly clock: Clock;
  /** Called when the local service did not answer and the visitor was refused. */
  onDialFailed(fault: Fault): void;
  /** Called exactly once when the visitor's connection has ended for any reason. */
  onDone(): void;
}

export interface ForwardOrder {
  readonly target: LocalTarget;
  readonly traffic: Traffic;
  /** Written to the service before the visitor's first byte. Null if nothing is written. */
  readonly preface: Buffer | null;
  /** Returns the visitor's end of the splice: the stream, or a wrapper that observes the traffic. Called once both ends are open. */
  readonly visitorEnd: (stream: MuxStream) => ByteDuplex;
}

/**
 * Serves one visitor: dials the local service, reports the result to the edge, and joins both ends. Runs for every connection, so it
 * creates only two promises.
 */
export const forwardBytes = async (
  stream: MuxStream,
  { target, traffic, preface, visitorEnd }: ForwardOrder,
  handlers: ForwardHandlers,
): Promise<void> => {
  traffic.started();
  let local: ByteDuplex;
  try {
    local = await connectLocal(target, handlers.clock);
  } catch (error) {
    traffic.ended();
    const { refusal, fault } = dialFailed(target, error);
    stream.refuse(refusal);
    handlers.onDialFailed(fault);
    handlers.onDone();
    return;
  }
  if (stream.state === 'offered') {
    if (preface !== null) local.write(preface, 0, preface.length, false);
    stream.accept();
    join(visitorEnd(stream), local, traffic, handlers);
    return;
  }
  // The visitor left while the client connected to the local service, so the new connection is closed.
  traffic.ended();
  local.reset({ code: 'cancelled', text: 'the visitor left' });
  handlers.onDone();
};

const join = (visitor: ByteDuplex, local: ByteDuplex, traffic: Traffic, handlers: ForwardHandlers): void => {
  // Visitor and service may both have ended before splice() returns.
  let joined: Splice | undefined;
  let done = false;
  const finish = (): void => {
    done = true;
    if (joined === undefined) return;
    traffic.ended(joined);
    handlers.onDone();
  };
  joined = splice(visitor, local, { onDone: finish, abandon: (error, where) => handlers.abandon(error, where) });
  if (done) finish();
  else traffic.joined(joined);
};
