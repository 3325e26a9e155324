// One connection to the control port, plain or TLS, up to the point where bytes may be sent. Says nothing of HTTP.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Fault } from '@tunnel/errors';
import { ALPN_NAMES } from '@tunnel/protocol';
import { type Endpoint, isLoopback } from './endpoint.ts';

export interface DialOptions {
  readonly minTlsVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Aborting ends the dial, at whatever point it is, with the signal's reason. */
  readonly signal: AbortSignal;
}

/** Rejects with node's own error, or with a Fault where the rule of clear text was about to be broken. */
export const dialSocket = (endpoint: Endpoint, options: DialOptions): Promise<Socket> =>
  new Promise((resolve, reject) => {
    options.signal.throwIfAborted();
    const socket = startDial(endpoint, options);
    const abort = (): void => void socket.destroy(options.signal.reason as Error);
    const settle = (): void => {
      options.signal.removeEventListener('abort', abort);
      socket.off('error', onError);
    };
    const onError = (error: Error): void => {
      settle();
      // destroy() may report once more; nobody is left to care.
      socket.on('error', () => {});
      socket.destroy();
      reject(error);
    };
    socket.on('error', onError);
    options.signal.addEventListener('abort', abort, { once: true });
    socket.once(endpoint.security.kind === 'tls' ? 'secureConnect' : 'connect', () => {
      const refusal = clearTextRefusal(endpoint, socket);
      if (refusal !== undefined) return onError(refusal);
      settle();
      resolve(socket);
    });
  });

const startDial = ({ address, security }: Endpoint, options: DialOptions): Socket => {
  const { host, port } = address;
  if (security.kind === 'plain') return connectPlain({ host, port, noDelay: true });
  const socket = connectTls({
    host,
    port,
    ALPNProtocols: [...ALPN_NAMES],
    minVersion: options.minTlsVersion,
    rejectUnauthorized: security.verify,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(security.ca === undefined ? {} : { ca: security.ca }),
  });
  socket.setNoDelay(true);
  return socket;
};

/** A name such as localhost may lead anywhere; without `tls: false` clear text stays on this machine. */
const clearTextRefusal = ({ address, security }: Endpoint, socket: Socket): Fault | undefined => {
  if (security.kind === 'tls' || !security.loopbackOnly) return undefined;
  const reached = socket.remoteAddress ?? '';
  if (isLoopback(reached)) return undefined;
  return new Fault('CLIENT_USAGE', {
    reason: `${address.text} leads to ${reached}, which is not this machine: use --tls, or --no-tls if the network between is yours`,
  });
};
