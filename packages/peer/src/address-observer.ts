// How a socket learns what the world sees of it: the answer of whoever asks the edge's two UDP ports through that very socket.
import type { PeerAddress } from './peer-transport.ts';

/** What the edge's two ports have seen. No address: nothing came back, UDP does not get through. */
export interface ObservedAddresses {
  readonly addresses: readonly PeerAddress[];
  /** Both ports saw the same: what one address is told, others can use. Different: the network chooses a port for each. */
  readonly ports: 'consistent' | 'random' | 'none';
}

/** One question through one socket. */
export interface AddressQuery {
  /** Whether the datagram was an answer to it, and is nobody else's. */
  onDatagram(bytes: Buffer, from: PeerAddress): boolean;
  /** Comes once: when both ports have answered, or at the end of the time for it. */
  readonly result: Promise<ObservedAddresses>;
  stop(): void;
}

export interface AddressObserver {
  ask(send: (bytes: Buffer, to: PeerAddress) => void): AddressQuery;
}
