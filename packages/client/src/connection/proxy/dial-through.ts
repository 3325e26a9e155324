// Opens a connection to a proxy and through the proxy to a server, ready to exchange bytes with the server. Knows nothing about the
// protocol on top.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, rootCertificates } from 'node:tls';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../../limits.ts';
import { certificateFault } from '../../network/dial-faults.ts';
import type { ServerAddress, TransportSecurity } from '../../network/endpoint.ts';
import { connectThrough } from './connect-proxy.ts';
import type { Proxy, ProxyKind } from './proxy-address.ts';
import { proxyUnreachable } from './proxy-faults.ts';

export interface DialThroughOptions {
  readonly clock: Clock;
  /** Aborting ends the connection attempt at any point, with the signal's reason. */
  readonly signal: AbortSignal;
  /** Trust settings for the server. An https:// proxy is verified with the same settings, plus the system's certificate authorities. */
  readonly security: TransportSecurity;
}

/**
 * Resolves with an unread socket, as from net.connect(). Rejects with a Fault of the proxy (CLIENT_PROXY_…, CLIENT_CERTIFICATE), or with
 * Node's error if a name cannot be resolved locally (socks5://).
 */
export const dialThrough = async (
  proxy: Proxy,
  target: ServerAddress,
  { clock, signal, security }: DialThroughOptions,
): Promise<Socket> => {
  signal.throwIfAborted();
  const socket = startDial(proxy, security);
  // Errors during the dial are handled by the steps below; afterwards the caller listens to the socket.
  socket.on('error', () => {});
  let ended: Error | undefined;
  const end = (reason: Error): void => {
    ended ??= reason;
    socket.destroy();
  };
  const seconds = CLIENT_LIMITS.PROXY_DIAL_TIMEOUT_MS / 1000;
  const timer = clock.setTimeout(
    () => end(proxyUnreachable(proxy, `no response within ${seconds} s`)),
    CLIENT_LIMITS.PROXY_DIAL_TIMEOUT_MS,
  );
  const onAbort = (): void => end(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await untilConnected(socket, proxy.kind);
    await HANDSHAKES[proxy.kind](socket, proxy, target);
    if (ended !== undefined) throw ended;
    return socket;
  } catch (error) {
    socket.destroy();
    throw ended ?? faultOf(error, proxy, target);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', onAbort);
  }
};

/** Loads the `socks` package only if a SOCKS proxy is used. */
const socksThrough: typeof connectThrough = async (...given) => {
  const loaded = await import('./socks-proxy.ts');
  return loaded.socksThrough(...given);
};

const HANDSHAKES: Readonly<Record<ProxyKind, typeof connectThrough>> = {
  http: connectThrough,
  https: connectThrough,
  socks5: socksThrough,
  socks5h: socksThrough,
};

const startDial = ({ kind, host, port }: Proxy, security: TransportSecurity): Socket => {
  if (kind !== 'https') return connectPlain({ host, port, noDelay: true });
  const ca = security.kind === 'tls' ? security.ca : undefined;
  const socket = connectTls({
    host,
    port,
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: security.kind === 'plain' || security.verify,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    // `ca_file` may hold the edge's private authority, while the proxy has a publicly trusted certificate.
    ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
  });
  socket.setNoDelay(true);
  return socket;
};

const untilConnected = (socket: Socket, kind: ProxyKind): Promise<void> =>
  new Promise((resolve, reject) => {
    const onClose = (): void => reject(new Error('the proxy closed the connection'));
    socket.once('error', reject).once('close', onClose);
    socket.once(kind === 'https' ? 'secureConnect' : 'connect', () => {
      socket.off('error', reject).off('close', onClose);
      resolve();
    });
  });

/** Converts an error into a fault of the proxy. A failed local lookup (socks5://) concerns the server's name, so Node's error is kept. */
const faultOf = (error: unknown, proxy: Proxy, target: ServerAddress): Error => {
  if (error instanceof Fault) return error;
  const { syscall, hostname } = error as { syscall?: string; hostname?: string };
  if (syscall === 'getaddrinfo' && hostname === target.host && hostname !== proxy.host) return error as Error;
  return certificateFault(proxy.text, error) ?? proxyUnreachable(proxy, error);
};
