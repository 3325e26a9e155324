// Network access for a direct path: a UDP socket that sends and receives datagrams, and a reliable, ordered connection on the same socket
// once a path was found. Implementations: udx (udx-transport) and in memory (testkit). The same test suite covers both.
import type { ByteDuplex, Guarded } from '@tunnel/mux';

export interface PeerAddress {
  /** IP address of a peer. IPv4 addresses are never written in IPv6-mapped form. */
  readonly host: string;
  readonly port: number;
}

/** abandon() reports an exception while a datagram was handled. The socket stays open. */
export interface PeerSocketHandlers extends Guarded {
  /** Called with a datagram; the callee can keep the memory. Packets of the reliable connection are not delivered. */
  onDatagram(bytes: Buffer, from: PeerAddress): void;
}

/** Numbers of a direct connection, exchanged before connecting. Packets with other numbers are dropped. */
export interface ConnectionIds {
  readonly own: number;
  readonly theirs: number;
}

export interface PeerSocket {
  readonly port: number;
  /** Sends without confirmation. The socket owns the memory from now on. The first byte must not be 0xFF. */
  send(bytes: Buffer, to: PeerAddress): void;
  /** Number of datagrams from send() that the kernel has not accepted yet. */
  readonly queuedDatagrams: number;
  /**
   * Opens the reliable connection. There is no handshake: both sides call connect, and bytes flow once both have. After onData returned
   * false, at most PEER_TRANSPORT_UNREAD_MAX_BYTES are buffered before the connection is reset; readers have their own credit to prevent
   * this.
   */
  connect(ids: ConnectionIds, to: PeerAddress): ByteDuplex;
  /** Closes the socket and resets its open connections. No event follows. */
  close(): void;
}

export interface PeerTransport {
  /** Opens a socket on a free port. `host` restricts the socket to one address. */
  open(handlers: PeerSocketHandlers, host?: string): PeerSocket;
}
