// The client's end of the UDP path for datagrams. Nothing is opened until the first udp tunnel; then a socket to the address of the control
// connection, and a new socket for every retry. The path is an optimization: without UDP, datagrams travel on carriers.
import { networkInterfaces } from 'node:os';
import {
  DATAGRAMS_OFF,
  type DatagramWay,
  type MuxSession,
  OpeningKey,
  PacketSocket,
  type PathKeys,
  type ReportInternalError,
  SealingKey,
  UdpPath,
} from '@tunnel/mux';
import type { EdgeUdp } from '@tunnel/peer';
import { CAPABILITY, type MessageOf, type SealedPath } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';

/** Interval at which a client with udp tunnels or peers checks for changed local addresses. */
export const OWN_ADDRESSES_EVERY_MS = 10_000;

type Offer = MessageOf<'DatagramPath'>;

export interface DatagramPathOptions {
  readonly mux: MuxSession;
  /** Remote address of the control connection. The edge's UDP ports are at the same address. */
  readonly address: string;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  /** Called with the transport of datagrams once udp tunnels exist: at the beginning, and at every change. */
  readonly onWay: (way: DatagramWay) => void;
  /** Returns the machine's addresses as one string. Default: the addresses of the network interfaces. */
  readonly ownAddresses?: () => string;
}

export class DatagramPath {
  readonly #options: DatagramPathOptions;
  readonly #ownAddresses: () => string;
  #state: 'not-wanted' | 'wanted' | 'over' = 'not-wanted';
  #offer: Offer | null = null;
  #observer: EdgeUdp | null = null;
  #path: UdpPath | null = null;
  #socket: PacketSocket | null = null;
  #addresses = '';
  #watch: Timer | null = null;

  constructor(options: DatagramPathOptions) {
    this.#options = options;
    this.#ownAddresses = options.ownAddresses ?? interfaceAddresses;
  }

  /** Ports and keys to query the machine's public address. Null if the edge does not offer address observation. */
  get observer(): EdgeUdp | null {
    return this.#observer;
  }

  /** Accepts new ids and keys for the UDP path from the edge, which replace earlier keys. */
  offered(offer: Offer): void {
    this.#offer = offer;
    this.#observer = createEdgeUdp(offer, this.#options.address);
    if (this.#state === 'wanted') this.#begin();
  }

  /** Starts the UDP path for the first udp tunnel. Safe to call again. */
  want(): void {
    if (this.#state !== 'not-wanted') return;
    this.#state = 'wanted';
    this.#begin();
  }

  /** Ends the path together with the session, because the keys expire with the session. */
  stop(): void {
    this.#state = 'over';
    this.#end();
  }

  #begin(): void {
    this.#end();
    const { mux, clock, report, onWay } = this.#options;
    const sealed = this.#offer?.path ?? null;
    if (sealed === null) return onWay(DATAGRAMS_OFF);
    const path: UdpPath = new UdpPath({
      keys: keysOf(sealed),
      follows: false,
      batches: mux.capabilities.includes(CAPABILITY.DATAGRAM_BATCH),
      clock,
      report,
      onDatagram: (flow, bytes, start, end) => void mux.deliverDatagram(flow, bytes, start, end),
      onChange: () => path === this.#path && onWay(path.way),
      // A NAT that lost the mapping of a port keeps losing it, so a retry uses a new socket.
      onRetry: () => void this.#openSocket(path),
    });
    this.#path = path;
    mux.datagramPath = path;
    this.#addresses = this.#ownAddresses();
    this.#watch = clock.setInterval(() => this.#lookAtAddresses(), OWN_ADDRESSES_EVERY_MS);
    path.start();
    void this.#openSocket(path);
  }

  #end(): void {
    const path = this.#path;
    this.#path = null;
    path?.stop();
    this.#options.mux.datagramPath = null;
    this.#watch?.cancel();
    this.#socket?.close();
    this.#socket = null;
  }

  /** Opens a new socket, which replaces the current socket as soon as it works. */
  async #openSocket(path: UdpPath): Promise<void> {
    const { address, report } = this.#options;
    const port = this.#offer?.ports[0] ?? 0;
    const socket: PacketSocket = new PacketSocket({
      family: address.includes(':') ? 6 : 4,
      onPacket: (packet, from) => path.receive(packet, from, socket),
      report,
    });
    try {
      await socket.connect({ address, port });
    } catch {
      // The UDP socket has no route to the edge right now. The path stays unproven, and the next retry opens another socket.
      return socket.close();
    }
    if (path !== this.#path) return socket.close();
    this.#socket?.close();
    this.#socket = socket;
    path.route = { socket };
    // Probes the new socket immediately, whether the path is still being tried or already in use.
    path.addressesChanged();
  }

  #lookAtAddresses(): void {
    const addresses = this.#ownAddresses();
    if (addresses === this.#addresses || this.#path === null) return;
    this.#addresses = addresses;
    // The old socket may be bound to an address that no longer exists.
    void this.#openSocket(this.#path);
  }
}

/** Returns the edge's observation endpoint, or null if the edge does not offer observation. */
export const createEdgeUdp = ({ observe, ports }: Offer, address: string): EdgeUdp | null => {
  if (observe === null) return null;
  const { id, sealing, opening } = keysOf(observe);
  return { host: address, ports, sealing: new SealingKey(id, sealing), opening: new OpeningKey(id, opening) };
};

const keysOf = ({ id, key_to_edge, key_to_client }: SealedPath): PathKeys => ({
  id: Buffer.from(id, 'hex'),
  sealing: Buffer.from(key_to_edge, 'base64url'),
  opening: Buffer.from(key_to_client, 'base64url'),
});

const interfaceAddresses = (): string =>
  Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => address)
    .sort()
    .join(' ');
