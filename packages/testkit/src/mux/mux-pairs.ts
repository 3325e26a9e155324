// Connected pairs over real loopback sockets: two raw sockets, two carriers, two sessions, or both ends of a stream.

import * as net from 'node:net';
import * as tls from 'node:tls';
import {
  acceptingServer,
  adoptAccepted,
  adoptSocket,
  alpnBytes,
  type ByteDuplex,
  beginTls,
  type Carrier,
  connectSocket,
  createCarrier,
  type HandleDuplex,
  MemoryBudget,
  type MuxClock,
  type MuxHandlers,
  MuxSession,
  type MuxStream,
  type SocketEnd,
} from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import { testCertificate } from '../tls/certificates.ts';
import { rethrow } from './recording-reader.ts';

export type PairKind = 'plain' | 'tls';

/** Makes a pair of connected and paused sockets: [accepted, dialed]. With TLS, the handshake has been completed. */
export const socketPair = async (kind: PairKind): Promise<[net.Socket, net.Socket]> => {
  const options = { allowHalfOpen: true, noDelay: true, pauseOnConnect: true };
  const server =
    kind === 'tls'
      ? tls.createServer({ ...testCertificate(), allowHalfOpen: true, minVersion: 'TLSv1.3' })
      : net.createServer(options);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const accepted = new Promise<net.Socket>((resolve) => {
    server.once(kind === 'tls' ? 'secureConnection' : 'connection', resolve);
  });
  const dialled = await new Promise<net.Socket>((resolve, reject) => {
    const socket: net.Socket =
      kind === 'tls'
        ? tls.connect(
            // The type definitions of tls.connect lack the documented option `allowHalfOpen`.
            {
              port,
              host: '127.0.0.1',
              ca: testCertificate().cert,
              minVersion: 'TLSv1.3',
              allowHalfOpen: true,
            } as tls.ConnectionOptions,
            () => resolve(socket),
          )
        : net.connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
  });
  dialled.pause();
  dialled.removeAllListeners('error');
  const pair: [net.Socket, net.Socket] = [await accepted, dialled];
  server.close();
  return pair;
};

export const carrierPair = async (kind: PairKind): Promise<[Carrier, Carrier]> => {
  const [accepted, dialled] = await socketPair(kind);
  return [createCarrier(accepted), createCarrier(dialled)];
};

export interface SessionPair {
  readonly edge: MuxSession;
  readonly client: MuxSession;
  /** Carriers of the edge, for tests that cut connections. */
  readonly carriers: Carrier[];
  close(): void;
}

export interface SessionPairOptions {
  readonly kind: PairKind;
  readonly carriers?: number;
  readonly edge?: Partial<MuxHandlers>;
  readonly client?: Partial<MuxHandlers>;
  readonly clock?: MuxClock;
  readonly budgetBytes?: number;
  /** Capabilities negotiated by edge and client. */
  readonly capabilities?: readonly string[];
}

export const sessionPair = async (options: SessionPairOptions): Promise<SessionPair> => {
  const budget = (): MemoryBudget => new MemoryBudget(options.budgetBytes ?? 1024 * 1024 * 1024);
  const quiet = { onCarrierLost: () => {}, report: rethrow };
  const { capabilities = [], clock = systemClock } = options;
  const session = (role: 'edge' | 'client'): MuxSession =>
    new MuxSession({ role, budget: budget(), clock, capabilities, handlers: { ...quiet, ...options[role] } });
  const edge = session('edge');
  const client = session('client');
  const carriers: Carrier[] = [];
  for (let i = 0; i < (options.carriers ?? 1); i++) {
    const [accepted, dialled] = await carrierPair(options.kind);
    carriers.push(accepted);
    edge.addCarrier(accepted);
    client.addCarrier(dialled);
  }
  const bye = { code: 'cancelled', text: 'test is over' } as const;
  const close = (): void => {
    edge.close(bye);
    client.close(bye);
  };
  return { edge, client, carriers, close };
};

/** Opens a stream from the edge to the client. Resolves with the two ends of the stream. */
export const openStream = (pair: SessionPair, accepted: Promise<MuxStream>): Promise<[MuxStream, MuxStream]> =>
  new Promise((resolve, reject) => {
    const opened = pair.edge.open(
      { tunnelId: 'tun_test', visitor: '127.0.0.1:1' },
      {
        onOpened: (stream) => void accepted.then((other) => resolve([stream, other])),
        onRefused: (reason) => reject(new Error(`${reason.code}: ${reason.text}`)),
        abandon: rethrow,
      },
    );
    if (opened === null) reject(new Error('no carrier'));
  });

/** Makes a pair of unread connections: [accepted, dialed]. Uses native handles if available, otherwise sockets of Node.js. */
export const acceptedPair = async (): Promise<[SocketEnd, SocketEnd]> => {
  let take: (end: SocketEnd) => void = () => {};
  const accepted = new Promise<SocketEnd>((resolve) => {
    take = resolve;
  });
  const server = acceptingServer({
    keepAliveMs: 60_000,
    take: (socket) => take(adoptAccepted(socket)),
    report: rethrow,
    where: 'pair.connection',
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const dialled = await connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock });
  const pair: [SocketEnd, SocketEnd] = [await accepted, dialled];
  server.close();
  return pair;
};

/**
 * Makes a pair of TLS connections, [accepted, dialed], after the handshake and before the first read. The accepted side runs TLS directly
 * on the native handle.
 */
const tlsHandlePair = async (): Promise<[SocketEnd, SocketEnd]> => {
  const context = tls.createSecureContext({ ...testCertificate(), minVersion: 'TLSv1.3' });
  let secured: (end: SocketEnd) => void = () => {};
  const accepted = new Promise<SocketEnd>((resolve) => {
    secured = resolve;
  });
  const take = (socket: unknown): void => {
    const duplex = socket as HandleDuplex;
    const handshake = { onSecure: () => secured(duplex), onFailed: () => duplex.destroy() };
    duplex.read({
      onData: (bytes, start, end) => {
        beginTls(duplex, context, alpnBytes(['http/1.1']), bytes.subarray(start, end), handshake);
        return true;
      },
      onEnd: () => duplex.destroy(),
      onReset: () => {},
      onDrain: () => {},
      abandon: rethrow,
    });
  };
  const server = acceptingServer({ keepAliveMs: 60_000, take, report: rethrow, where: 'pair.connection' });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const options = { port, host: '127.0.0.1', ca: testCertificate().cert, allowHalfOpen: true };
  const dialled = await new Promise<net.Socket>((resolve, reject) => {
    const socket: net.Socket = tls.connect(options as tls.ConnectionOptions, () => resolve(socket));
    socket.once('error', reject);
  });
  dialled.pause();
  dialled.removeAllListeners('error');
  const pair: [SocketEnd, SocketEnd] = [await accepted, adoptSocket(dialled)];
  server.close();
  return pair;
};

export type EndKind = 'accepted' | 'accepted-tls' | 'socket' | 'socket-tls' | 'stream-plain' | 'stream-tls';

type SocketKind = 'accepted' | 'accepted-tls' | 'socket' | 'socket-tls';

const endsOf = async (kind: SocketKind): Promise<[SocketEnd, SocketEnd]> => {
  if (kind === 'accepted') return acceptedPair();
  if (kind === 'accepted-tls') return tlsHandlePair();
  const [accepted, dialled] = await socketPair(kind === 'socket' ? 'plain' : 'tls');
  return [adoptSocket(accepted), adoptSocket(dialled)];
};

/** Makes two ends of one connection: bytes written to one end are read at the other end. */
export const endPair = async (kind: EndKind): Promise<{ a: ByteDuplex; b: ByteDuplex; close(): void }> => {
  if (kind !== 'stream-plain' && kind !== 'stream-tls') {
    const [a, b] = await endsOf(kind);
    const bye = { code: 'cancelled', text: 'test is over' } as const;
    return {
      a,
      b,
      close: () => {
        a.reset(bye);
        b.reset(bye);
      },
    };
  }
  let take: (stream: MuxStream) => void = () => {};
  const accepted = new Promise<MuxStream>((resolve) => {
    take = resolve;
  });
  const pair = await sessionPair({
    kind: kind === 'stream-tls' ? 'tls' : 'plain',
    client: {
      onStream: (stream) => {
        stream.accept();
        take(stream);
      },
    },
  });
  const [a, b] = await openStream(pair, accepted);
  return { a, b, close: pair.close };
};
