// Opens a connection to a server, plain or TLS, direct or through a proxy, ready to send bytes. Knows nothing about HTTP.

import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { Fault } from '@tunnel/errors';
import { ALPN_NAMES } from '@tunnel/protocol';
import { isLoopbackHost } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import { type ServerAddress, type TransportSecurity } from '../network/endpoint.ts';
import { dialThrough } from './proxy/dial-through.ts';
import type { Proxy } from './proxy/proxy-address.ts';
import { preferredCiphers } from './tls-ciphers.ts';
import type { TlsSession } from './tls-session.ts';

/** A server to connect to: address, transport security, and the proxy on the way. */
export interface Endpoint {
  readonly address: ServerAddress;
  readonly security: TransportSecurity;
  /** Proxy on the way to the server. Null for a direct connection. */
  readonly proxy: Proxy | null;
}

export interface DialOptions {
  readonly clock: Clock;
  readonly minTlsVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Aborting ends the connection attempt at any point, with the signal's reason. */
  readonly signal: AbortSignal;
  /** ALPN names offered to the server in TLS. Default: the names of the control port. */
  readonly alpn?: readonly string[];
  /** Builds the fault for a connection that would have gone unencrypted to `where`. */
  readonly refuseClearText?: (where: string) => Fault;
  /** TLS session to resume. Forgotten if a handshake fails. */
  readonly tlsSession?: TlsSession;
  /** Whether the sessions that the server offers on this connection replace `tlsSession`. */
  readonly keepsTlsSession?: boolean;
}

/** Rejects with Node's error, or with a Fault if the proxy failed or the connection would have been unencrypted against the rules. */
export const dialSocket = async (endpoint: Endpoint, options: DialOptions): Promise<Socket> => {
  const { address, security, proxy } = endpoint;
  const way = proxy === null ? null : await dialThrough(proxy, address, { ...options, security });
  return secured(endpoint, way, options);
};

/** Returns the dial timeout. A proxy adds its own timeout, which elapses before the server's timeout starts. */
export const dialTimeoutMs = ({ proxy }: Endpoint, serverMs: number): number =>
  proxy === null ? serverMs : serverMs + CLIENT_LIMITS.PROXY_DIAL_TIMEOUT_MS;

const secured = (endpoint: Endpoint, way: Socket | null, options: DialOptions): Promise<Socket> =>
  new Promise((resolve, reject) => {
    options.signal.throwIfAborted();
    const socket = startDial(endpoint, way, options);
    let isReached = way !== null;
    socket.once('connect', () => {
      isReached = true;
    });
    const abort = (): void => void socket.destroy(options.signal.reason as Error);
    const settle = (): void => {
      options.signal.removeEventListener('abort', abort);
      socket.off('error', onError).off('close', onClose);
    };
    const onError = (error: Error): void => {
      settle();
      if (isReached) options.tlsSession?.forget();
      // destroy() may emit another error of the socket, which must not become an uncaught exception.
      socket.on('error', () => {});
      socket.destroy();
      reject(error);
    };
    const onClose = (): void => onError(new Error('the connection was closed'));
    const onReady = (): void => {
      const refusal = clearTextRefusal(endpoint, socket, options);
      if (refusal !== undefined) return onError(refusal);
      settle();
      resolve(socket);
    };
    socket.on('error', onError).on('close', onClose);
    options.signal.addEventListener('abort', abort, { once: true });
    if (endpoint.security.kind === 'tls') socket.once('secureConnect', onReady);
    else if (way === null) socket.once('connect', onReady);
    else onReady();
  });

const startDial = ({ address, security }: Endpoint, way: Socket | null, options: DialOptions): Socket => {
  const { host, port } = address;
  if (security.kind === 'plain') return way ?? connectPlain({ host, port, noDelay: true });
  const where: ConnectionOptions = way === null ? { host, port } : { socket: way };
  const { tlsSession, keepsTlsSession = false } = options;
  const session = tlsSession?.current;
  const socket = connectTls({
    ...where,
    ALPNProtocols: [...(options.alpn ?? ALPN_NAMES)],
    minVersion: options.minTlsVersion,
    ...preferredCiphers(),
    rejectUnauthorized: security.verify,
    // The host name is passed explicitly to verify the server's certificate, because for a given socket Node.js has no other way to know
    // it.
    ...(isIP(host) === 0 ? { servername: host } : { host }),
    ...(security.ca === undefined ? {} : { ca: security.ca }),
    ...(session === undefined ? {} : { session }),
  });
  if (keepsTlsSession) tlsSession?.keepFrom(socket);
  socket.setNoDelay(true);
  return socket;
};

/**
 * Returns a fault if unencrypted traffic would leave this machine without `tls: false`, since a name such as localhost can resolve to any
 * address. Behind a proxy both must be local: the target by its name, and the proxy by the connected address.
 */
const clearTextRefusal = (
  { address, security, proxy }: Endpoint,
  socket: Socket,
  { refuseClearText }: DialOptions,
): Fault | undefined => {
  if (security.kind === 'tls' || !security.loopbackOnly) return undefined;
  const reached = socket.remoteAddress ?? '';
  const isHere = isLoopbackHost(reached) && (proxy === null || isLoopbackHost(address.host));
  if (isHere) return undefined;
  if (refuseClearText !== undefined) return refuseClearText(proxy?.text ?? reached);
  const leads = proxy === null ? `resolves to ${reached}` : `would be requested unencrypted from ${proxy.text}`;
  return new Fault('CLIENT_USAGE', {
    reason: `${address.text} ${leads}, which is not this computer: use --tls, or --no-tls on a network you trust`,
  });
};
