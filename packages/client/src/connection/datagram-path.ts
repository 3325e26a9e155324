// The client's end of the UDP path of its datagrams: nothing until the first udp tunnel, then a socket to where the control connection leads, and
// another one for each new try. Never more than a faster way: without it datagrams go on carriers.
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
import type { MessageOf, SealedPath } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';

/** how often a client with udp tunnels or peers looks whether its own addresses have changed */
export const OWN_ADDRESSES_EVERY_MS = 10_000;

type Offer = MessageOf<'DatagramPath'>;

export interface DatagramPathOptions {
  readonly mux: MuxSession;
  /** Where the control connection leads: the edge's UDP ports are at the same address. */
  readonly address: string;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  /** Once udp tunnels are there: at the beginning, and at each change. */
  readonly onWay: (way: DatagramWay) => void;
  /** The machine's own addresses, as one text; those of its interfaces unless said otherwise. */
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

  /** null: the edge does not offer it. */
  get observer(): EdgeUdp | null {
    return this.#observer;
  }

  /** Ids and keys, also in place of those before. */
  offered(offer: Offer): void {
    this.#offer = offer;
    this.#observer = createEdgeUdp(offer, this.#options.address);
    if (this.#state === 'wanted') this.#begin();
  }

  /** There is a udp tunnel. Any number of times. */
  want(): void {
    if (this.#state !== 'not-wanted') return;
    this.#state = 'wanted';
    this.#begin();
  }

  /** The session is over: so are its keys. */
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
      clock,
      report,
      onDatagram: (flow, bytes, start, end) => mux.deliverDatagram(flow, bytes, start, end),
      onChange: () => path === this.#path && onWay(path.way),
      // A NAT that lost its way keeps losing it for the same port.
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

  /** Takes the place of the one before as soon as it works. */
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
      // No way there now. The path is not proven, and the next try opens another one.
      return socket.close();
    }
    if (path !== this.#path) return socket.close();
    this.#socket?.close();
    this.#socket = socket;
    path.route = { socket };
    // It is asked at once, whether it is new to a path that is tried or to one that is in use.
    path.addressesChanged();
  }

  #lookAtAddresses(): void {
    const addresses = this.#ownAddresses();
    if (addresses === this.#addresses || this.#path === null) return;
    this.#addresses = addresses;
    // The old one is bound to an address that may be gone.
    void this.#openSocket(this.#path);
  }
}

/** null: the edge does not offer it. */
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
