// A UDP relay that stands for the network between two programs, as a NAT does: each sender gets a port of its own towards the target. It can
// drop one way or both, delay, give senders another address, and play back what passed.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';

export interface UdpRelayOptions {
  readonly target: { readonly host: string; readonly port: number };
  readonly host?: string;
  /** Any free one unless told. */
  readonly port?: number;
}

/** What does not pass. */
export type UdpBlock = 'nothing' | 'to-target' | 'to-senders' | 'everything';

export interface UdpRelay {
  readonly host: string;
  readonly port: number;
  /** For packets from now on. */
  block: UdpBlock;
  /** Added to every packet, each way. */
  delayMs: number;
  /** Every packet that senders sent, dropped ones included, in order. */
  readonly sent: readonly Buffer[];
  /** The senders, by the port that the target sees. */
  readonly mappedPorts: readonly number[];
  /** Each sender gets another port towards the target with its next packet: a NAT that forgot, a phone that moved. */
  changeAddresses(): void;
  /** To the target, from an address that it has not seen yet. */
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
