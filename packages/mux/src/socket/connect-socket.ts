// Dials a local service, plain or TLS, and returns a SocketEnd. IP addresses and Unix paths are dialed without net.Socket. Host names can
// have several addresses, so Node.js chooses the address.
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { SocketEnd } from '../bytes/byte-duplex.ts';
import { type DialTime, dialHandle, type HandleAddress } from '../native/dial-handle.ts';
import { nodeHandles } from '../native/node-handles.ts';
import { dialStatically } from '../native/node-internals.ts';
import { adoptSocket, SocketDuplex } from './socket-duplex.ts';

/** Address to connect to: TCP host and port, or path of a Unix socket. */
type DialAddress = { readonly host: string; readonly port: number } | { readonly path: string };

export type DialOptions = DialAddress & DialTime;

/**
 * TLS options. If `verify` is true, the certificate must be trusted on this machine and valid for the host (localhost for a Unix socket).
 */
export type TlsDialOptions = DialOptions & { readonly verify: boolean };

/** Connects without TLS. Rejects with Node's error, including `code`. */
export const connectSocket = (options: DialOptions): Promise<SocketEnd> => {
  const node = nodeHandles();
  const literal = node === null ? null : literalOf(options);
  return node === null || literal === null ? connectByName(options) : dialHandle(literal, options, node);
};

/** Returns null for a host name, or for an address that a native handle does not support. */
const literalOf = (address: DialAddress): HandleAddress | null => {
  if ('path' in address) return process.platform === 'win32' ? null : { family: 'unix', path: address.path };
  const { host, port } = address;
  const family = isIP(host);
  const isPort = Number.isInteger(port) && port >= 0 && port <= 65_535;
  return (family === 4 || family === 6) && isPort ? { family, host, port } : null;
};

const connectByName = ({ timeoutMs, clock, ...address }: DialOptions): Promise<SocketDuplex> => {
  let dialled!: Socket;
  const duplex = new SocketDuplex((reader) => {
    const attached = dialStatically({ ...address, allowHalfOpen: true, noDelay: true }, reader);
    dialled = attached.socket;
    return attached;
  });
  return once(dialled, 'connect', { timeoutMs, clock }, () => duplex);
};

/** Connects with TLS. Rejects with Node's error. The timeout covers connect and handshake together. */
export const connectTlsSocket = ({ timeoutMs, clock, verify, ...address }: TlsDialOptions): Promise<SocketDuplex> => {
  // Node.js documents allowHalfOpen here, but its type definitions lack the option.
  const options: ConnectionOptions & { readonly allowHalfOpen: boolean } = {
    ...address,
    // SNI must not contain an IP address (RFC 6066, section 3).
    ...('host' in address && isIP(address.host) === 0 ? { servername: address.host } : {}),
    rejectUnauthorized: verify,
    ALPNProtocols: ['http/1.1'],
    allowHalfOpen: true,
  };
  const socket = connectTls(options);
  socket.setNoDelay(true);
  return once(socket, 'secureConnect', { timeoutMs, clock }, () => {
    socket.pause();
    return adoptSocket(socket);
  });
};

/** Waits for an event. `take` runs within the event callback, so that the socket has its next owner before any other event. */
const once = <T>(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  { timeoutMs, clock }: DialTime,
  take: () => T,
): Promise<T> =>
  new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      timer.cancel();
      socket.destroy();
      reject(error);
    };
    const timer = clock.setTimeout(() => {
      fail(Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }));
    }, timeoutMs);
    // The listener stays after a failure, because a socket being destroyed can emit another error.
    socket.on('error', fail);
    socket.once(event, () => {
      timer.cancel();
      try {
        const taken = take();
        socket.off('error', fail);
        resolve(taken);
      } catch (error) {
        fail(error as Error);
      }
    });
  });
