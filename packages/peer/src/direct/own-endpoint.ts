// This side of a direct path: the transport, loaded at the first try; the one socket that all rounds use, so that its addresses stay what the
// network knows; and where that socket may be reached.
import type { Guarded } from '@tunnel/mux';
import type { PeerAddress, PeerSocket, PeerTransport } from '../transport/peer-transport.ts';
import { type AddressObserver, type AddressQuery, candidatesOf } from './candidates.ts';
import type { Inability, Reachability } from './peer-messages.ts';

export interface PeerNetwork {
  /** Asked at the first try to go direct, never before. null: it cannot be loaded here (`no-transport`). */
  loadTransport(): Promise<PeerTransport | null>;
  /** How the very socket that will be used learns its public addresses. null: the edge has it switched off (`off`). */
  observer(): AddressObserver | null;
  /** Addresses of the machine's interfaces that may be offered. */
  ownAddresses(): readonly string[];
}

export interface OwnEndpointOptions extends Guarded {
  readonly network: PeerNetwork;
  /** false: relay alone. */
  readonly isAllowed: boolean;
  /** What is no answer to the question for addresses. */
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

  /** Where the socket may be reached, asked anew; or why there is none. `onSocket`: from here on something is under way. */
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
    return { socket, ports, candidates: candidatesOf(own, socket.port, { addresses, ports }) };
  }

  /** Since they were gathered. Tells each change once. */
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
      // No descriptor, no port: as if there were none.
      return null;
    }
    return this.#socket;
  }
}
