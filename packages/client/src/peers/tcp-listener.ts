// A local TCP port for programs to reach a peer's service. Connections become streams of the peer session.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { adoptSocket, guard, type OpenAnswer, type ReportInternalError, type Splice, splice } from '@tunnel/mux';
import type { PeerSubscriber } from '@tunnel/peer';
import { hostPort } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import type { Traffic } from '../local/traffic.ts';
import type { ListenAddress } from './peer-types.ts';

export interface PeerListener {
  /** Local address of the p2p connection, with the assigned port. */
  readonly address: ListenAddress;
  /** Stops accepting connections at the local port. Current connections continue. */
  close(): void;
}

export interface ListenerOptions {
  readonly clock: Clock;
  readonly report: ReportInternalError;
  readonly traffic: Traffic;
  /** Counts a connection being served over the p2p tunnel. Returns a function that ends the count. */
  readonly beginServing: () => () => void;
}

/** The part of a p2p session that a local listener uses. */
export type StreamOpener = Pick<PeerSubscriber, 'open' | 'openDatagrams'>;

// Sockets stay paused until the peer has answered, so that early data stays in the kernel instead of the process's memory.
const SERVER_OPTIONS = { allowHalfOpen: true, noDelay: true, pauseOnConnect: true } as const;

export const openTcpListener = async (
  { host, port }: ListenAddress,
  opener: StreamOpener,
  deps: ListenerOptions,
): Promise<PeerListener> => {
  const server: Server = createServer(SERVER_OPTIONS);
  guard.accept(server, 'connection', deps.report, 'peer.listener', (socket: Socket) => carry(socket, opener, deps));
  const listening = once(server, 'listening');
  server.listen({ host, port });
  await listening;
  // Without free descriptors a new local connection is lost, but the listener continues.
  server.on('error', (error) => deps.report(error, 'peer.listener'));
  const bound = server.address();
  const address = { host, port: typeof bound === 'object' && bound !== null ? bound.port : port };
  return { address, close: () => void server.close() };
};

const carry = (socket: Socket, opener: StreamOpener, deps: ListenerOptions): void => {
  const { traffic, report } = deps;
  const isOver = deps.beginServing();
  traffic.started();
  // A program that leaves before the peer answers is noticed at the splice.
  socket.on('error', () => {});
  const refuse = (): void => {
    traffic.ended();
    isOver();
    socket.resetAndDestroy();
  };
  const answer: OpenAnswer = {
    onOpened: (stream) => {
      if (socket.destroyed) {
        stream.reset({ code: 'cancelled', text: 'the visitor left' });
        return refuse();
      }
      let joined: Splice | undefined;
      let isDone = false;
      const finish = (): void => {
        isDone = true;
        if (joined === undefined) return;
        traffic.ended(joined);
        isOver();
      };
      // The local connection and the p2p stream may both have ended before splice() returns.
      joined = splice(adoptSocket(socket), stream, { onDone: finish, abandon: report });
      if (isDone) finish();
      else traffic.joined(joined);
    },
    onRefused: refuse,
    abandon: (error, where) => {
      report(error, where);
      socket.destroy();
    },
  };
  const visitor = hostPort(socket.remoteAddress ?? '', socket.remotePort ?? 0);
  if (opener.open({ tunnelId: 'peer', visitor }, answer) === null) refuse();
};
