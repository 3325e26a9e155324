// What a direct path needs of the network: one UDP socket that sends and receives datagrams as they are, and carries a reliable, ordered
// connection beside them once the way is open. Implementations: udx (udx-transport), and in memory (testkit). One suite tries both.
import type { ByteDuplex, Guarded } from '@tunnel/mux';

export interface PeerAddress {
  /** An IP address; IPv4 is never written in its IPv6 form. */
  readonly host: string;
  readonly port: number;
}

/** abandon(): something threw while a datagram was handled; the socket goes on. */
export interface PeerSocketHandlers extends Guarded {
  /** The memory may be kept. Only datagrams of ours: what belongs to the connection is not shown. */
  onDatagram(bytes: Buffer, from: PeerAddress): void;
}

/** Both sides know both numbers before they connect; a packet of another number is nobody's. */
export interface ConnectionIds {
  readonly own: number;
  readonly theirs: number;
}

export interface PeerSocket {
  readonly port: number;
  /** Fire and forget. The memory belongs to the socket from here on. The first byte is never 0xFF. */
  send(bytes: Buffer, to: PeerAddress): void;
  /** Of send(), which the kernel has not taken yet. */
  readonly queuedDatagrams: number;
  /**
   * The reliable connection. There is no handshake: both sides call it, and bytes flow when both have. After a false of onData at most
   * PEER_TRANSPORT_UNREAD_MAX_BYTES wait, then it is reset: whoever reads here has credit of its own.
   */
  connect(ids: ConnectionIds, to: PeerAddress): ByteDuplex;
  /** Resets the connections that are left. Nothing is told afterwards. */
  close(): void;
}

export interface PeerTransport {
  /** A socket on a port of the kernel's choice; `host` for one address alone. */
  open(handlers: PeerSocketHandlers, host?: string): PeerSocket;
}
