// Dials a local service that speaks TLS; what comes back is a SocketDuplex like any other.
import { isIP } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { adoptSocket, type DialOptions, type SocketDuplex } from './socket-duplex.ts';

export interface TlsDialOptions extends DialOptions {
  /** Whether the certificate must be one that is trusted here, and of this host. */
  readonly verify: boolean;
}

/** Rejects with Node's own error (`code` says which). The time covers connect and handshake together. */
export const connectTlsSocket = ({ host, port, timeoutMs, verify }: TlsDialOptions): Promise<SocketDuplex> =>
  new Promise((resolve, reject) => {
    // Node documents allowHalfOpen here; its types do not know it.
    const options: ConnectionOptions & { readonly allowHalfOpen: boolean } = {
      host,
      port,
      // An address has no place in SNI (RFC 6066, section 3).
      ...(isIP(host) === 0 ? { servername: host } : {}),
      rejectUnauthorized: verify,
      ALPNProtocols: ['http/1.1'],
      allowHalfOpen: true,
    };
    const socket = connect(options);
    socket.setNoDelay(true);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => {
      fail(Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }));
    }, timeoutMs);
    // It stays for what comes after a failure: a socket that is being destroyed may complain once more.
    socket.on('error', fail);
    socket.once('secureConnect', () => {
      clearTimeout(timer);
      socket.pause();
      socket.off('error', fail);
      resolve(adoptSocket(socket));
    });
  });
