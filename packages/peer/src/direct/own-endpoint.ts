// Local end of a direct path: the transport, loaded on first use, the socket shared by all rounds (so that its public addresses stay the
// same), and its candidate addresses.
import type { Guarded } from '@tunnel/mux';
import type { PeerAddress, PeerSocket, PeerTransport } from '../transport/peer-transport.ts';
import { type AddressObserver, type AddressQuery, listCandidates } from './candidates.ts';
import type { Inability, Reachability } from './peer-messages.ts';

export interface PeerNetwork {
  /** Called at the first direct attempt, not earlier. Resolves to null if the transport cannot be loaded (`no-transport`). */
  loadTransport(): Promise<PeerTransport | null>;
  /** Returns the observer for public addresses of the socket. Null if the edge has direct connections turned off (`off`). */
  observer(): AddressObserver | null;
  /** Returns addresses of the machine's interfaces that can be offered to the other side. */
  ownAddresses(): readonly string[];
}

export interface OwnEndpointOptions extends Guarded {
  readonly network: PeerNetwork;
  /** False to use only the relay and open no UDP socket. */
  readonly isAllowed: boolean;
  /** Receives datagrams of the direct path's socket that are not answers to an address query. */
  onDatagram(bytes: Buffer, from: PeerAddress): void;
}

export interface OwnAddresses {
  readonly socket: PeerSocket;
  readonly candidates: readonly PeerAddress[];
  readonly ports: Reachability;
}

export class OwnEndpoint {
  readonly #options: OwnEndpointOptions;
  #socket: PeerSocket | null = null;
  #query: AddressQuery | null = null;
  #machineAddresses = '';
  #closed = false;

  constructor(options: OwnEndpointOptions) {
    this.#options = options;
  }

  /**
   * Returns the socket's current addresses, or why no direct path is possible. `onSocket` is called once the socket is open and the query
   * starts.
   */
  async gather(onSocket: () => void): Promise<OwnAddresses | Inability> {
    const { network, isAllowed } = this.#options;
    const observer = isAllowed ? network.observer() : null;
    if (observer === null) return 'off';
    const socket = await this.#open();
    if (socket === null) return 'no-transport';
    onSocket();
    const query = observer.ask((bytes, to) => socket.send(bytes, to));
    this.#query = query;
    const { addresses, ports } = await query.result;
    if (this.#query === query) this.#query = null;
    const own = network.ownAddresses();
    this.#machineAddresses = own.join();
    return { socket, ports, candidates: listCandidates(own, socket.port, { addresses, ports }) };
  }

  /** Returns true if the machine's addresses changed since the last call or gather(). */
  hasMoved(): boolean {
    if (this.#socket === null || this.#query !== null) return false;
    const addresses = this.#options.network.ownAddresses().join();
    if (addresses === this.#machineAddresses) return false;
    this.#machineAddresses = addresses;
    return true;
  }

  cancelQuery(): void {
    this.#query?.stop();
    this.#query = null;
  }

  close(): void {
    this.#closed = true;
    this.cancelQuery();
    this.#socket?.close();
  }

  async #open(): Promise<PeerSocket | null> {
    if (this.#socket !== null) return this.#socket;
    const transport = await this.#options.network.loadTransport();
    if (transport === null || this.#closed) return null;
    const handlers = {
      onDatagram: (bytes: Buffer, from: PeerAddress): void => {
        if (this.#query?.onDatagram(bytes, from) !== true) this.#options.onDatagram(bytes, from);
      },
      abandon: (error: unknown, where: string): void => this.#options.abandon(error, where),
    };
    try {
      this.#socket ??= transport.open(handlers);
    } catch {
      // Opening the UDP socket failed, for example without free descriptors or ports.
      return null;
    }
    return this.#socket;
  }
}
