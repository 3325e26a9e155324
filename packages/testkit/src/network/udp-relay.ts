// UDP relay that simulates the network between two programs, like a NAT: every sender gets a separate port toward the target. Can drop
// packets in one or both directions, delay packets, change the senders' addresses, and inject packets.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';

export interface UdpRelayOptions {
  readonly target: { readonly host: string; readonly port: number };
  readonly host?: string;
  /** Port of the relay. Default: any free port. */
  readonly port?: number;
}

/** Direction in which packets are dropped. */
export type UdpBlock = 'nothing' | 'to-target' | 'to-senders' | 'everything';

export interface UdpRelay {
  readonly host: string;
  readonly port: number;
  /** Direction to block. Applies to further packets. */
  block: UdpBlock;
  /** Delay added to every packet, in either direction, in milliseconds. */
  delayMs: number;
  /** Every packet sent by a sender, in order, including dropped packets. */
  readonly sent: readonly Buffer[];
  /** Ports of the senders as seen by the target. */
  readonly mappedPorts: readonly number[];
  /**
   * Gives every sender a new port toward the target from the next packet on, like a NAT that lost its mappings or a phone that changed
   * networks.
   */
  changeAddresses(): void;
  /** Sends a packet to the target from an address unknown to the target. */
  inject(packet: Buffer): void;
  close(): void;
}

const SENT_MAX = 10_000;

export const startUdpRelay = async (options: UdpRelayOptions): Promise<UdpRelay> => {
  const { target, host = '127.0.0.1' } = options;
  const front = createSocket('udp4');
  front.bind(options.port ?? 0, host);
  await once(front, 'listening');
  const sent: Buffer[] = [];
  const mappings = new Map<string, Socket>();
  const strangers: Socket[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let isOpen = true;

  const later = (act: () => void): void => {
    if (relay.delayMs === 0) return act();
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (isOpen) act();
    }, relay.delayMs);
    timers.add(timer);
  };
  const socketTowards = (onAnswer: (packet: Buffer) => void): Socket => {
    const socket = createSocket('udp4');
    socket.on('error', () => {});
    socket.on('message', onAnswer);
    return socket;
  };
  const mappingOf = (from: RemoteInfo): Socket => {
    const key = `${from.address}:${from.port}`;
    const known = mappings.get(key);
    if (known !== undefined) return known;
    const socket = socketTowards((packet) => {
      if (relay.block === 'to-senders' || relay.block === 'everything') return;
      later(() => front.send(packet, from.port, from.address));
    });
    mappings.set(key, socket);
    return socket;
  };
  front.on('error', () => {});
  front.on('message', (packet, from) => {
    if (sent.length < SENT_MAX) sent.push(packet);
    if (relay.block === 'to-target' || relay.block === 'everything') return;
    later(() => mappingOf(from).send(packet, target.port, target.host));
  });
  const closeMappings = (): void => {
    for (const socket of mappings.values()) socket.close();
    mappings.clear();
  };
  const relay: UdpRelay = {
    host,
    port: front.address().port,
    block: 'nothing',
    delayMs: 0,
    sent,
    get mappedPorts() {
      return [...mappings.values()].map((socket) => socket.address().port);
    },
    changeAddresses: closeMappings,
    inject: (packet) => {
      const socket = socketTowards(() => {});
      strangers.push(socket);
      socket.send(packet, target.port, target.host);
    },
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      for (const timer of timers) clearTimeout(timer);
      closeMappings();
      for (const socket of [front, ...strangers]) socket.close();
    },
  };
  return relay;
};
