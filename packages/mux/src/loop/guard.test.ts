// Faults below every guard of the mux: a fault costs a single socket, stream or carrier, and is reported once.
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { eventually, type SessionPair, sessionPair, socketPair } from '@tunnel/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ByteReader, SocketEnd } from '../bytes/byte-duplex.ts';
import { splice } from '../bytes/splice.ts';
import { CarrierWriter } from '../carrier/carrier-writer.ts';
import { HandleDuplex } from '../native/handle-duplex.ts';
import { FramedConnection } from '../session/framed-connection.ts';
import { acceptingServer, adoptAccepted } from '../socket/accept-sockets.ts';
import { adoptSocket } from '../socket/socket-duplex.ts';
import type { MuxStream, OpenAnswer } from '../stream/mux-stream.ts';

const HEAD = { tunnelId: 'tun_1', visitor: '' };
const FAULT = new Error('raised on purpose');
const raise = (): never => {
  throw FAULT;
};

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

/** Creates a reader with a `method` that throws, and records the calls of abandon() in `told`. */
const faulty = (method: keyof ByteReader | null, told: string[]): ByteReader => ({
  onData: () => true,
  onDrain: () => {},
  onEnd: () => {},
  onReset: () => {},
  abandon: (error, where) => told.push(error === FAULT ? where : String(error)),
  ...(method === null ? {} : { [method]: raise }),
});

/** Creates a pair of sockets that ignore errors, because these tests cut connections. */
const quietPair = async (): ReturnType<typeof socketPair> => {
  const pair = await socketPair('plain');
  for (const socket of pair) socket.on('error', () => {});
  return pair;
};

describe('a socket duplex', () => {
  it.each(['static', 'chunk'] as const)(
    'is abandoned but stays open when the reader throws on %s data',
    async (path) => {
      const [accepted, dialled] = await quietPair();
      const told: string[] = [];
      const end = adoptSocket(accepted);
      cleanups.push(
        () => dialled.destroy(),
        () => end.reset({ code: 'cancelled', text: '' }),
      );
      end.read(faulty('onData', told));
      if (path === 'chunk') end.onChunk(Buffer.from('x'));
      else dialled.write('x');
      await eventually(() => expect(told).toEqual(['socket.data']));
      // The reader decides about the connection after an error, so a response can still be sent.
      end.write(Buffer.from('sorry'), 0, 5, false);
      dialled.resume();
      expect(String((await once(dialled, 'data'))[0])).toBe('sorry');
    },
  );

  it.each([
    ['onEnd', 'socket.end', 'end'],
    ['onReset', 'socket.reset', 'resetAndDestroy'],
  ] as const)('is abandoned when %s throws', async (method, where, leave) => {
    const [accepted, dialled] = await quietPair();
    const told: string[] = [];
    const end = adoptSocket(accepted);
    cleanups.push(() => end.reset({ code: 'cancelled', text: '' }));
    end.read(faulty(method, told));
    dialled[leave]();
    await eventually(() => expect(told).toEqual([where]));
  });

  it('is destroyed when abandon() throws', async () => {
    const [accepted, dialled] = await quietPair();
    adoptSocket(accepted).read({ ...faulty('onData', []), abandon: raise });
    dialled.on('error', () => {});
    dialled.write('x');
    await eventually(() => expect(accepted.destroyed).toBe(true));
    dialled.destroy();
  });

  it('is abandoned when the reader throws on drain or flush', async () => {
    const [accepted, dialled] = await quietPair();
    const told: string[] = [];
    const end = adoptSocket(accepted);
    end.read(faulty('onDrain', told));
    const piece = Buffer.alloc(1024 * 1024);
    while (end.write(piece, 0, piece.length, false));
    dialled.resume();
    await eventually(() => expect(told).toEqual(['socket.drain']));
    end.end(raise);
    await eventually(() => expect(told).toEqual(['socket.drain', 'socket.flushed']));
    dialled.destroy();
  });
});

describe('a handle duplex', () => {
  const start = async (told: string[], method: keyof ByteReader | null) => {
    let take: (end: SocketEnd) => void = () => {};
    const accepted = new Promise<SocketEnd>((resolve) => {
      take = resolve;
    });
    const server = acceptingServer({
      keepAliveMs: 60_000,
      take: (socket) => take(adoptAccepted(socket)),
      report: (error) => void told.push(String(error)),
      where: 'test.connection',
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const peer = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    const end = await accepted;
    expect(end).toBeInstanceOf(HandleDuplex);
    cleanups.push(
      () => server.close(),
      () => peer.destroy(),
      () => end.reset({ code: 'cancelled', text: '' }),
    );
    const reader = faulty(method, told);
    return { end, peer, reader };
  };

  it('is abandoned but stays open when the reader throws on data', async () => {
    const told: string[] = [];
    const { end, peer, reader } = await start(told, 'onData');
    end.read(reader);
    peer.write('x');
    await eventually(() => expect(told).toEqual(['socket.data']));
    end.write(Buffer.from('sorry'), 0, 5, false);
    expect(String((await once(peer, 'data'))[0])).toBe('sorry');
  });

  it.each([
    ['onEnd', 'socket.end', 'end'],
    ['onReset', 'socket.reset', 'resetAndDestroy'],
  ] as const)('is abandoned when %s throws', async (method, where, leave) => {
    const told: string[] = [];
    const { end, peer, reader } = await start(told, method);
    end.read(reader);
    peer[leave]();
    await eventually(() => expect(told).toEqual([where]));
  });

  it('is destroyed when abandon() throws', async () => {
    const { end, peer, reader } = await start([], 'onData');
    end.read({ ...reader, abandon: raise });
    peer.write('x');
    await eventually(() => expect((end as HandleDuplex).destroyed).toBe(true));
    await eventually(() => expect(peer.destroyed || peer.readableEnded || end.hasLostPeer).toBe(true));
  });

  it('is abandoned when the reader throws on drain or flush', async () => {
    const told: string[] = [];
    const { end, peer, reader } = await start(told, 'onDrain');
    end.read(reader);
    const piece = Buffer.alloc(1024 * 1024);
    while (end.write(piece, 0, piece.length, false));
    peer.resume();
    await eventually(() => expect(told).toEqual(['socket.drain']));
    end.end(raise);
    await eventually(() => expect(told).toEqual(['socket.drain', 'socket.flushed']));
  });
});

interface Reports {
  readonly edge: string[];
  readonly client: string[];
}

const startSession = async (
  onStream: (stream: MuxStream) => void,
): Promise<{ pair: SessionPair; reports: Reports }> => {
  const reports: Reports = { edge: [], client: [] };
  const told = (list: string[]) => (error: unknown, where: string) =>
    void list.push(error === FAULT ? where : String(error));
  const pair = await sessionPair({
    kind: 'plain',
    carriers: 2,
    edge: { report: told(reports.edge) },
    client: { report: told(reports.client), onStream },
  });
  cleanups.push(() => pair.close());
  return { pair, reports };
};

const open = (pair: SessionPair, told: string[], method: keyof OpenAnswer | null = null): Promise<MuxStream | null> =>
  new Promise((resolve) => {
    pair.edge.open(HEAD, {
      onOpened: (stream) => {
        resolve(stream);
        if (method === 'onOpened') raise();
      },
      onRefused: () => {
        resolve(null);
        if (method === 'onRefused') raise();
      },
      abandon: (error, where) => told.push(error === FAULT ? where : String(error)),
    });
  });

describe('a byte stream', () => {
  it.each([
    ['onData', 'stream.data', (stream: MuxStream) => stream.write(Buffer.from('x'), 0, 1, false)],
    ['onEnd', 'stream.end', (stream: MuxStream) => stream.end()],
    ['onReset', 'stream.reset', (stream: MuxStream) => stream.reset({ code: 'cancelled', text: '' })],
  ] as const)(
    'is reset when %s throws, while the carrier, the session and other streams stay open',
    async (method, where, act) => {
      const accepted: MuxStream[] = [];
      const { pair, reports } = await startSession((stream) => {
        stream.accept();
        accepted.push(stream);
      });
      const told: string[] = [];
      const neighbour = await open(pair, told);
      neighbour?.read(faulty(null, told));
      const stream = await open(pair, told);
      stream?.read(faulty(method, told));
      act(accepted[1] as MuxStream);
      await eventually(() => expect(told).toEqual([where]));
      expect(stream?.state).toBe('closed');
      expect([neighbour?.state, pair.edge.liveCarriers, pair.edge.liveStreams]).toEqual(['open', 2, 1]);
      expect(reports).toEqual({ edge: [], client: [] });
    },
  );

  it('is reset when onDrain throws', async () => {
    const accepted: MuxStream[] = [];
    const { pair } = await startSession((stream) => {
      stream.accept();
      accepted.push(stream);
    });
    const told: string[] = [];
    const stream = (await open(pair, told)) as MuxStream;
    stream.read(faulty('onDrain', told));
    const piece = Buffer.alloc(64 * 1024);
    while (stream.write(piece, 0, piece.length, false));
    accepted[0]?.read(faulty(null, told));
    await eventually(() => expect(told).toEqual(['stream.drain']));
    expect([stream.state, pair.edge.liveCarriers]).toEqual(['closed', 2]);
  });

  it.each([
    ['onOpened', 'stream.opened'],
    ['onRefused', 'stream.refused'],
  ] as const)('affects no other stream when %s throws', async (method, where) => {
    const { pair } = await startSession((stream) =>
      method === 'onOpened' ? stream.accept() : stream.refuse({ code: 'dial-refused', text: '' }),
    );
    const told: string[] = [];
    await open(pair, told, method);
    await eventually(() => expect(told).toEqual([where]));
    await eventually(() => expect([pair.edge.liveStreams, pair.edge.liveCarriers]).toEqual([0, 2]));
  });

  it('is refused when the handler throws, and the session stays open', async () => {
    const { pair, reports } = await startSession(raise);
    expect(await open(pair, [])).toBeNull();
    expect(reports.client).toEqual(['stream.offered']);
    expect([pair.client.liveCarriers, pair.client.liveStreams]).toEqual([2, 0]);
  });

  it('is reported through the session when abandon() throws', async () => {
    const accepted: MuxStream[] = [];
    const { pair, reports } = await startSession((stream) => {
      stream.accept();
      accepted.push(stream);
    });
    const stream = await open(pair, []);
    stream?.read({ ...faulty('onData', []), abandon: raise });
    accepted[0]?.write(Buffer.from('x'), 0, 1, false);
    await eventually(() => expect(reports.edge).toEqual(['stream.data']));
    expect([stream?.state, pair.edge.liveCarriers]).toEqual(['closed', 2]);
  });
});

describe('a faulty carrier', () => {
  /** Makes the next call of `method` throw, in either of the two sessions. */
  const raiseOnce = (prototype: object, method: string): void => {
    vi.spyOn(prototype as Record<string, () => unknown>, method).mockImplementationOnce(raise);
  };

  it.each([
    ['carrier.data', FramedConnection.prototype, 'onBytes'],
    ['carrier.written', CarrierWriter.prototype, 'flush'],
    ['carrier.tick', FramedConnection.prototype, 'tick'],
  ] as const)('that throws at %s is closed alone, and the error is reported once', async (where, prototype, method) => {
    const { pair, reports } = await startSession((stream) => stream.accept());
    await eventually(() => expect(pair.edge.liveCarriers).toBe(2));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    raiseOnce(prototype, method);
    if (method === 'tick') pair.edge.tick(performance.now());
    else void open(pair, []);
    await eventually(() => expect([...reports.edge, ...reports.client]).toEqual([where]));
    await eventually(() => expect([pair.edge.openCarriers, pair.client.openCarriers]).toEqual([1, 1]));
    expect((await open(pair, []))?.state).toBe('open');
  });

  it('is removed even if the close handler throws', async () => {
    const { pair, reports } = await startSession((stream) => stream.accept());
    const told: string[] = [];
    (await open(pair, told))?.read(faulty(null, told));
    const real = FramedConnection.prototype.onClosed;
    const passOn = function (this: FramedConnection, reason: string): void {
      real.call(this, reason);
    };
    // The first call, at the edge, passes. The second call, at the client, throws during 'end', 'close' or 'error'.
    vi.spyOn(FramedConnection.prototype, 'onClosed').mockImplementationOnce(passOn).mockImplementationOnce(raise);
    pair.carriers[0]?.destroy('cut');
    await eventually(() => expect([...reports.edge, ...reports.client]).toHaveLength(1));
    expect(['carrier.end', 'carrier.close', 'carrier.error']).toContain([...reports.edge, ...reports.client][0]);
    await eventually(() => expect([pair.client.openCarriers, pair.client.liveStreams]).toEqual([1, 0]));
  });
});

it('a handler that throws makes a splice reset both ends and report the error once', async () => {
  const [accepted, dialled] = await quietPair();
  const [far, near] = await quietPair();
  const told: string[] = [];
  let ends = 0;
  splice(adoptSocket(accepted), adoptSocket(near), {
    onBytes: raise,
    onDone: () => {
      ends += 1;
    },
    abandon: (_error, where) => told.push(where),
  });
  const gone = Promise.all(
    [dialled, far].map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on('error', () => {})
            .on('close', resolve)
            .resume(),
        ),
    ),
  );
  dialled.write('x');
  await gone;
  expect([told, ends]).toEqual([['socket.data'], 1]);
});
