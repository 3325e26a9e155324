// A local TCP port where programs reach what a peer publishes: its connections become streams of the peer session.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { adoptSocket, guard, type OpenAnswer, type ReportInternalError, type Splice, splice } from '@tunnel/mux';
import type { PeerSubscriber } from '@tunnel/peer';
import { hostPort } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import type { Traffic } from '../local/traffic.ts';
import type { ListenAddress } from './peer-types.ts';

export interface PeerListener {
  /** With the port that it has. */
  readonly address: ListenAddress;
  /** No new connections; those that are there go on. */
  close(): void;
}

export interface ListenerOptions {
  readonly clock: Clock;
  readonly report: ReportInternalError;
  readonly traffic: Traffic;
  /** One more connection is served; returns what says that it is over. */
  readonly beginServing: () => () => void;
}

/** What of the peer session a listener needs. */
export type StreamOpener = Pick<PeerSubscriber, 'open' | 'openDatagrams'>;

// Paused until the peer has answered: what a program says first stays in the kernel, and needs no memory here.
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
  // Out of descriptors: whoever came is lost, the listener is not.
  server.on('error', (error) => deps.report(error, 'peer.listener'));
  const bound = server.address();
  const address = { host, port: typeof bound === 'object' && bound !== null ? bound.port : port };
  return { address, close: () => void server.close() };
};

const carry = (socket: Socket, opener: StreamOpener, deps: ListenerOptions): void => {
  const { traffic, report } = deps;
  const isOver = deps.beginServing();
  traffic.started();
  // One that leaves while the peer is asked is seen when it is joined.
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
      // Both ends may be over before splice() returns.
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
