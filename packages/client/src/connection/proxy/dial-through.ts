// One connection to a proxy, and through it to a server, up to the point where bytes go to the server and come from it. Says nothing of what they are.
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
  /** Aborting ends the dial, at whatever point it is, with the signal's reason. */
  readonly signal: AbortSignal;
  /** How the server is trusted: an https:// proxy is trusted the same way, and by the system's authorities too. */
  readonly security: TransportSecurity;
}

/**
 * Settles with a socket that nobody has read from, as net.connect() gives it. Rejects with a Fault of the proxy (CLIENT_PROXY_…, CLIENT_CERTIFICATE), or with node's error for a name that cannot be
 * resolved here (socks5://).
 */
export const dialThrough = async (
  proxy: Proxy,
  target: ServerAddress,
  { clock, signal, security }: DialThroughOptions,
): Promise<Socket> => {
  signal.throwIfAborted();
  const socket = startDial(proxy, security);
  // Whoever waits hears of an error by the steps below; afterwards the socket has an owner who listens.
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

/** With the package behind it, which nobody else needs. */
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
    // `ca_file` may be the edge's own authority, while the proxy has a certificate like any other server.
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

/** A name that is not known here (socks5://) is the server's, not the proxy's. */
const faultOf = (error: unknown, proxy: Proxy, target: ServerAddress): Error => {
  if (error instanceof Fault) return error;
  const { syscall, hostname } = error as { syscall?: string; hostname?: string };
  if (syscall === 'getaddrinfo' && hostname === target.host && hostname !== proxy.host) return error as Error;
  return certificateFault(proxy.text, error) ?? proxyUnreachable(proxy, error);
};
