// Dials the local service of a tunnel, and says in plain words what was in the way.
import { Fault } from '@tunnel/errors';
import { connectSocket, connectTlsSocket, type SocketDuplex } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { codeOf, isCertificateTrouble, reasonOf } from '../dial-faults.ts';
import { CLIENT_LIMITS } from '../limits.ts';

export interface LocalTarget {
  readonly host: string;
  readonly port: number;
  /** null: the service does not speak TLS. */
  readonly tls: { readonly verify: boolean } | null;
}

/** Why the service was not reached: for the owner, and for the edge. */
export class DialFailed extends Error {
  readonly fault: Fault;
  readonly refusal: StreamReason;

  constructor(fault: Fault, code: 'dial-refused' | 'dial-timeout') {
    super(fault.message, { cause: fault });
    this.fault = fault;
    this.refusal = { code, text: fault.message };
  }
}

export type DialLocal = (target: LocalTarget) => Promise<SocketDuplex>;

/** Rejects with DialFailed. */
export const dialLocal: DialLocal = async (target) => {
  const { host, port, tls } = target;
  const timeoutMs = CLIENT_LIMITS.LOCAL_DIAL_TIMEOUT_MS;
  try {
    if (tls === null) return await connectSocket({ host, port, timeoutMs });
    return await connectTlsSocket({ host, port, timeoutMs, verify: tls.verify });
  } catch (error) {
    throw new DialFailed(faultOf(target, error), codeOf(error) === 'ETIMEDOUT' ? 'dial-timeout' : 'dial-refused');
  }
};

const faultOf = ({ host, port, tls }: LocalTarget, error: unknown): Fault => {
  const target = `${host}:${port}`;
  if (tls !== null && isCertificateTrouble(error)) {
    const reason = `${reasonOf(error)} (${codeOf(error)})`;
    return new Fault('CLIENT_LOCAL_CERTIFICATE', { target, reason }, { cause: error });
  }
  return new Fault('CLIENT_LOCAL_DIAL', { target, reason: dialReason(error) }, { cause: error });
};

/** OpenSSL's words for a handshake with a server that answers in plain text help nobody. */
export const dialReason = (error: unknown): string =>
  /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/.test(codeOf(error))
    ? 'it does not speak TLS'
    : reasonOf(error);
