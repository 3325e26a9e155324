// User-space NAT on loopback in front of one peer's socket, with four kinds of behavior and two UDP sockets per mapping. Packets from the
// peer go to the inner socket that represents their destination, and leave through the outer socket. The peer and its udx library do not
// notice the NAT.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { PeerAddress, PeerSocket, PeerTransport } from '@tunnel/peer';

/**
 * Kinds of NAT behavior. `open`: one outer port, which accepts packets from any address. `moderate`: one outer port, which accepts
 * packets only from addresses that the peer has contacted. `strict`: a separate outer port for every destination, which accepts packets
 * from this destination only. `blocked`: no packets pass.
 */
export type NatKind = 'open' | 'moderate' | 'strict' | 'blocked';

const HOST = '127.0.0.1';
const SOCKETS = 48;

export interface UserSpaceNat {
  /** Behavior of the NAT for further packets. */
  kind: NatKind;
  /** Outer ports so far: a single port or, for a strict NAT, one port per destination. */
  readonly outerPorts: readonly number[];
  /** Wraps a transport: one socket of the transport is then behind the NAT. */
  behind(transport: PeerTransport): PeerTransport;
  close(): void;
}

interface Way {
  readonly inner: Socket;
  readonly remote: PeerAddress;
  readonly outer: Socket;
}

/** Makes a bound socket. Sockets are bound in advance, because new mappings must be available immediately. */
const boundSocket = async (): Promise<Socket> => {
  const socket = createSocket('udp4');
  socket.on('error', () => {});
  socket.bind(0, HOST);
  await once(socket, 'listening');
  return socket;
};

export const startUserSpaceNat = async (kind: NatKind): Promise<UserSpaceNat> => {
  const free = await Promise.all(Array.from({ length: SOCKETS }, boundSocket));
  const all = [...free];
  const ways = new Map<string, Way>();
  const byInnerPort = new Map<number, Way>();
  const outers: Socket[] = [];
  let inside: PeerAddress | null = null;

  const take = (): Socket => {
    const socket = free.pop();
    if (socket === undefined) throw new Error('a NAT of tests has no more sockets');
    return socket;
  };
  const outerFor = (): Socket => {
    const known = outers[0];
    if (known !== undefined && nat.kind !== 'strict') return known;
    const outer = take();
    outers.push(outer);
    outer.on('message', (packet, from) => onArrival(outer, packet, from));
    return outer;
  };
  const wayTo = (remote: PeerAddress, outer?: Socket): Way => {
    const key = `${remote.host}:${remote.port}`;
    const known = ways.get(key);
    if (known !== undefined) return known;
    const way = { inner: take(), remote, outer: outer ?? outerFor() };
    ways.set(key, way);
    byInnerPort.set(way.inner.address().port, way);
    way.inner.on('message', (packet) => {
      if (nat.kind !== 'blocked') way.outer.send(packet, remote.port, remote.host);
    });
    return way;
  };
  const onArrival = (outer: Socket, packet: Buffer, from: RemoteInfo): void => {
    const known = ways.get(`${from.address}:${from.port}`);
    const mayPass = nat.kind === 'open' || (known !== undefined && known.outer === outer);
    if (nat.kind === 'blocked' || !mayPass || inside === null) return;
    const way = wayTo({ host: from.address, port: from.port }, outer);
    way.inner.send(packet, inside.port, inside.host);
  };
  const innerOf = (remote: PeerAddress): PeerAddress => ({ host: HOST, port: wayTo(remote).inner.address().port });

  const nat: UserSpaceNat = {
    kind,
    get outerPorts() {
      return outers.map((socket) => socket.address().port);
    },
    behind: (transport) => ({
      open: (handlers) => {
        const socket = transport.open(
          {
            onDatagram: (bytes, from) => {
              const way = byInnerPort.get(from.port);
              if (way !== undefined) handlers.onDatagram(bytes, way.remote);
            },
            abandon: (error, where) => handlers.abandon(error, where),
          },
          HOST,
        );
        inside = { host: HOST, port: socket.port };
        return behindNat(socket, innerOf);
      },
    }),
    close: () => {
      for (const socket of all) socket.close();
    },
  };
  return nat;
};

const behindNat = (socket: PeerSocket, innerOf: (remote: PeerAddress) => PeerAddress): PeerSocket => ({
  port: socket.port,
  get queuedDatagrams() {
    return socket.queuedDatagrams;
  },
  send: (bytes, to) => socket.send(bytes, innerOf(to)),
  connect: (ids, to) => socket.connect(ids, innerOf(to)),
  close: () => socket.close(),
});
