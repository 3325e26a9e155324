// Dials a local service, plain or TLS; what comes back is a SocketDuplex like any other.
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { dialStatically } from './node-internals.ts';
import { adoptSocket, SocketDuplex } from './socket-duplex.ts';

export interface DialOptions {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
}

export interface TlsDialOptions extends DialOptions {
  /** Whether the certificate must be one that is trusted here, and of this host. */
  readonly verify: boolean;
}

/** Rejects with Node's own error (`code` says which). */
export const connectSocket = ({ host, port, timeoutMs }: DialOptions): Promise<SocketDuplex> => {
  let dialled!: Socket;
  const duplex = new SocketDuplex((reader) => {
    const attached = dialStatically({ host, port, allowHalfOpen: true, noDelay: true }, reader);
    dialled = attached.socket;
    return attached;
  });
  return once(dialled, 'connect', timeoutMs, () => duplex);
};

/** Rejects with Node's own error. The time covers connect and handshake together. */
export const connectTlsSocket = ({ host, port, timeoutMs, verify }: TlsDialOptions): Promise<SocketDuplex> => {
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
  const socket = connectTls(options);
  socket.setNoDelay(true);
  return once(socket, 'secureConnect', timeoutMs, () => {
    socket.pause();
    return adoptSocket(socket);
  });
};

/** `take` runs inside the event: the socket has its next owner before anything else can happen to it. */
const once = <T>(socket: Socket, event: 'connect' | 'secureConnect', timeoutMs: number, take: () => T): Promise<T> =>
  new Promise((resolve, reject) => {
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
    socket.once(event, () => {
      clearTimeout(timer);
      try {
        const taken = take();
        socket.off('error', fail);
        resolve(taken);
      } catch (error) {
        fail(error as Error);
      }
    });
  });
