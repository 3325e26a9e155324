// PeerTransport on udx-native: reliable, congestion-controlled streams over UDP, with our datagrams on the same socket. udx-native is
// optional native code, loaded at the first direct attempt. If it cannot be loaded, connections stay on the relay.
import type { ConnectionIds, PeerAddress, PeerSocket, PeerSocketHandlers, PeerTransport } from './peer-transport.ts';
import { UdxDuplex } from './udx-duplex.ts';
import type { Udx, UdxModule, UdxSocket } from './udx-types.ts';

/** Socket buffer requested from the kernel for a direct path. Limited by net.core.rmem_max. */
const PEER_SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;

const UDX_MAGIC_BYTE = 0xff;

class UdxPeerSocket implements PeerSocket {
  readonly port: number;
  readonly #udx: Udx;
  readonly #socket: UdxSocket;
  readonly #connections = new Set<UdxDuplex>();
  #closed = false;
  queuedDatagrams = 0;

  constructor(udx: Udx, handlers: PeerSocketHandlers, host: string | undefined) {
    this.#udx = udx;
    this.#socket = udx.createSocket();
    // Binds to IPv4 and IPv6 if both are available; udx reports IPv4 addresses in IPv4 form.
    this.#socket.bind(0, host);
    this.port = this.#socket.address()?.port ?? 0;
    // With a small buffer, packets received while the event loop is busy would be lost and the path would look slow.
    this.#socket.setRecvBufferSize(PEER_SOCKET_BUFFER_BYTES);
    this.#socket.on('error', () => {});
    this.#socket.on('message', (bytes: Buffer, from: PeerAddress) => {
      // Packets of udx appear here if their stream has ended or does not exist yet.
      if (this.#closed || bytes[0] === UDX_MAGIC_BYTE) return;
      try {
        handlers.onDatagram(bytes, { host: from.host, port: from.port });
      } catch (error) {
        handlers.abandon(error, 'peer.datagram');
      }
    });
  }

  send(bytes: Buffer, to: PeerAddress): void {
    if (this.#closed) return;
    this.queuedDatagrams += 1;
    // A datagram to an unreachable address counts as lost, like any other lost packet.
    this.#socket.send(bytes, to.port, to.host).then(this.#onSent, this.#onSent);
  }

  readonly #onSent = (): void => {
    this.queuedDatagrams -= 1;
  };

  connect(ids: ConnectionIds, to: PeerAddress): UdxDuplex {
    const stream = this.#udx.createStream(ids.own);
    stream.connect(this.#socket, ids.theirs, to.port, to.host);
    const connection = new UdxDuplex(stream, () => this.#connections.delete(connection));
    this.#connections.add(connection);
    return connection;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const connection of this.#connections) connection.reset();
    void this.#socket.close();
  }
}

class UdxTransport implements PeerTransport {
  readonly #udx: Udx;

  constructor(udx: Udx) {
    this.#udx = udx;
  }

  open(handlers: PeerSocketHandlers, host?: string): PeerSocket {
    return new UdxPeerSocket(this.#udx, handlers, host);
  }
}

let loading: Promise<PeerTransport | null> | null = null;

/** Loads the transport once per process. Resolves to null if no build exists for this machine or the package is not installed. */
export const loadUdxTransport = (): Promise<PeerTransport | null> => {
  loading ??= load();
  return loading;
};

const load = async (): Promise<PeerTransport | null> => {
  try {
    // @ts-expect-error It brings no types; udx-types has what we use of it.
    const { default: UdxOfModule } = (await import('udx-native')) as UdxModule;
    return new UdxTransport(new UdxOfModule());
  } catch {
    return null;
  }
};
