// Dials a local service, plain or TLS; what comes back is the end of a socket like any other. Literal addresses and paths are dialled without
// net.Socket; a name may have several addresses, and which of them is taken is Node's to say.
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { SocketEnd } from '../bytes/byte-duplex.ts';
import { type DialTime, dialHandle, type HandleAddress } from '../native/dial-handle.ts';
import { nodeHandles } from '../native/node-handles.ts';
import { dialStatically } from '../native/node-internals.ts';
import { adoptSocket, SocketDuplex } from './socket-duplex.ts';

/** Over TCP, or through a Unix socket. */
type DialAddress = { readonly host: string; readonly port: number } | { readonly path: string };

export type DialOptions = DialAddress & DialTime;

/** `verify`: whether the certificate must be one that is trusted here, and of this host; behind a Unix socket that is localhost. */
export type TlsDialOptions = DialOptions & { readonly verify: boolean };

/** Rejects with Node's own error (`code` says which). */
export const connectSocket = (options: DialOptions): Promise<SocketEnd> => {
  const node = nodeHandles();
  const literal = node === null ? null : literalOf(options);
  return node === null || literal === null ? connectByName(options) : dialHandle(literal, options, node);
};

/** null: a name, or nothing that a handle could be given. */
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

/** Rejects with Node's own error. The time covers connect and handshake together. */
export const connectTlsSocket = ({ timeoutMs, clock, verify, ...address }: TlsDialOptions): Promise<SocketDuplex> => {
  // Node documents allowHalfOpen here; its types do not know it.
  const options: ConnectionOptions & { readonly allowHalfOpen: boolean } = {
    ...address,
    // An address has no place in SNI (RFC 6066, section 3).
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

/** `take` runs inside the event: the socket has its next owner before anything else can happen to it. */
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
    // It stays for what comes after a failure: a socket that is being destroyed may complain once more.
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
