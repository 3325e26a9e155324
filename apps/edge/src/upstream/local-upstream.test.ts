import { createServer, type Server, type Socket } from 'node:net';
import { adoptSocket, type ByteDuplex } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, rethrow, socketPair } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { createLocalDial, LocalUpstream, PLATFORM_STREAMS_MAX } from './local-upstream.ts';
import { type OfferedStream, type UpstreamUnderTest, upstreamConformance } from './upstream.conformance.ts';
import type { UpstreamStream } from './upstream.ts';

/** A dial as seen by the service, which accepts or refuses the connection. */
class OfferedDial implements OfferedStream {
  state: OfferedStream['state'] = 'offered';
  readonly dialled: Promise<ByteDuplex>;
  #answer!: (end: ByteDuplex) => void;
  #refuse!: (error: Error) => void;
  readonly #own: ByteDuplex;
  readonly #other: ByteDuplex;

  constructor([own, other]: readonly [ByteDuplex, ByteDuplex], signal: AbortSignal) {
    this.#own = own;
    this.#other = other;
    this.dialled = new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#refuse = reject;
    });
    signal.addEventListener('abort', () => {
      this.state = 'closed';
    });
  }

  accept(): void {
    this.state = 'open';
    this.#answer(this.#other);
  }

  refuse({ text }: StreamReason): void {
    this.state = 'closed';
    this.#refuse(Object.assign(new Error(text), { code: text }));
  }

  read(...given: Parameters<ByteDuplex['read']>): void {
    this.#own.read(...given);
  }

  write(...given: Parameters<ByteDuplex['write']>): boolean {
    return this.#own.write(...given);
  }

  resume(): void {
    this.#own.resume();
  }

  end(onFlushed?: () => void): void {
    this.#own.end(onFlushed);
  }

  reset(reason: StreamReason): void {
    this.#own.reset(reason);
  }
}

upstreamConformance('of this machine', async () => {
  const clock = new FakeClock();
  const sockets: Socket[] = [];
  const dial = async (head: StreamHead, signal: AbortSignal): Promise<ByteDuplex> => {
    const pair = await socketPair('plain');
    sockets.push(...pair);
    const offered = new OfferedDial([adoptSocket(pair[0]), adoptSocket(pair[1])], signal);
    set.onStream(offered, head);
    return offered.dialled;
  };
  const upstream = new LocalUpstream({ dial, clock, report: rethrow });
  const set: UpstreamUnderTest = {
    upstream,
    onStream: () => {},
    pass: (ms) => clock.advance(ms),
    get liveStreams() {
      return upstream.liveStreams;
    },
    cleanUp: async () => {
      for (const socket of sockets) socket.destroy();
    },
  };
  return set;
});

describe('a service on this machine', () => {
  const servers: Server[] = [];
  const accepted: Socket[] = [];

  afterEach(async () => {
    for (const socket of accepted) socket.destroy();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    servers.length = 0;
    accepted.length = 0;
  });

  const listen = async (serve: (socket: Socket) => void): Promise<number> => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      accepted.push(socket);
      socket.on('error', () => {});
      serve(socket);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as { port: number }).port;
  };

  const upstreamTo = (port: number): LocalUpstream =>
    new LocalUpstream({
      dial: createLocalDial({ host: '127.0.0.1', port }, systemClock),
      clock: systemClock,
      report: rethrow,
    });

  const open = (upstream: LocalUpstream): Promise<UpstreamStream> =>
    new Promise((resolve, reject) => {
      upstream.open(
        { tunnelId: 'platform', visitor: '' },
        { onOpened: resolve, onRefused: ({ code, text }) => reject(new Error(`${code} ${text}`)), abandon: rethrow },
      );
    });

  /** Creates a reader that stops when `takes` returns false. A later call of `read` with a new reader takes the stream over. */
  const reader = (takes: () => boolean = () => true) => {
    const seen = { text: '', bytes: 0, ends: 0, drains: 0, reset: null as StreamReason | null };
    return {
      seen,
      onData: (bytes: Buffer, start: number, end: number): boolean => {
        seen.bytes += end - start;
        if (seen.bytes < 1000) seen.text += bytes.toString('latin1', start, end);
        return takes();
      },
      onDrain: () => {
        seen.drains += 1;
      },
      onEnd: () => {
        seen.ends += 1;
      },
      onReset: (reason: StreamReason) => {
        seen.reset = reason;
      },
      abandon: rethrow,
    };
  };

  const write = (stream: UpstreamStream, text: string): boolean =>
    stream.write(Buffer.from(text), 0, text.length, false);

  it('serves one reader after another over a stream, and each direction ends separately', async () => {
    const port = await listen((socket) => {
      socket.on('data', (bytes) => socket.write(bytes));
      socket.on('end', () => socket.end('bye'));
    });
    const upstream = upstreamTo(port);
    const stream = await open(upstream);
    const first = reader();
    const second = reader();
    stream.read(first);
    write(stream, 'one');
    await eventually(() => expect(first.seen.text).toBe('one'));
    stream.read(second);
    write(stream, 'two');
    stream.end();
    await eventually(() => expect(second.seen).toMatchObject({ text: 'twobye', ends: 1, reset: null }));
    expect([first.seen.text, stream.state, upstream.liveStreams]).toEqual(['one', 'closed', 0]);
  });

  it('that is not running refuses a stream at once', async () => {
    const port = await listen(() => {});
    await new Promise((resolve) => servers.pop()?.close(resolve));
    const upstream = upstreamTo(port);
    await expect(open(upstream)).rejects.toThrow('dial-refused ECONNREFUSED');
    expect(upstream.liveStreams).toBe(0);
  });

  it('is read only as fast as the reader takes data, and continues with the next reader', async () => {
    const whole = 32 * 1024 * 1024;
    const port = await listen((socket) => socket.end(Buffer.alloc(whole)));
    const stream = await open(upstreamTo(port));
    const slow = reader(() => false);
    stream.read(slow);
    await eventually(() => expect(slow.seen.bytes).toBeGreaterThan(0));
    const before = slow.seen.bytes;
    await new Promise((resolve) => setImmediate(resolve));
    expect(slow.seen.bytes).toBe(before);
    stream.resume();
    await eventually(() => expect(slow.seen.bytes).toBeGreaterThan(before));
    const next = reader();
    stream.read(next);
    await eventually(() => expect(next.seen.ends).toBe(1));
    expect(slow.seen.bytes + next.seen.bytes).toBe(whole);
  });

  it('makes the writer wait while it does not read', async () => {
    const port = await listen((socket) => {
      socket.pause();
      setImmediate(() => setImmediate(() => socket.resume()));
    });
    const stream = await open(upstreamTo(port));
    const watcher = reader();
    stream.read(watcher);
    const large = Buffer.alloc(16 * 1024 * 1024);
    expect(stream.write(large, 0, large.length, true)).toBe(false);
    await eventually(() => expect(watcher.seen.drains).toBe(1));
    stream.reset({ code: 'cancelled', text: 'enough' });
    expect(stream.state).toBe('closed');
  });

  it('resets the stream when it resets the connection; a reader that throws also closes the stream', async () => {
    const port = await listen((socket) => socket.once('data', () => socket.resetAndDestroy()));
    const upstream = upstreamTo(port);
    const stream = await open(upstream);
    const watcher = reader();
    stream.read(watcher);
    write(stream, 'x');
    await eventually(() => expect(watcher.seen.reset?.code).toBe('peer-reset'));
    expect([stream.state, upstream.liveStreams]).toEqual(['closed', 0]);
    const echoing = upstreamTo(await listen((socket) => socket.write('hello')));
    const thrown: unknown[] = [];
    const fragile = await open(echoing);
    fragile.read({
      ...reader(() => {
        throw new Error('ours');
      }),
      abandon: (error) => void thrown.push(error),
    });
    await eventually(() => expect([fragile.state, echoing.liveStreams]).toEqual(['closed', 0]));
    expect(thrown).toMatchObject([{ message: 'ours' }]);
  });

  it('gets a limited number of streams; further streams are refused with limit', async () => {
    const upstream = new LocalUpstream({
      dial: () => new Promise(() => {}),
      clock: new FakeClock(),
      report: rethrow,
    });
    const refused: StreamReason[] = [];
    const answer = {
      onOpened: () => {},
      onRefused: (reason: StreamReason) => void refused.push(reason),
      abandon: rethrow,
    };
    const head = { tunnelId: 'platform', visitor: '' };
    for (let count = 0; count < PLATFORM_STREAMS_MAX; count += 1) upstream.open(head, answer);
    expect(refused).toEqual([]);
    upstream.open(head, answer);
    await eventually(() => expect(refused.map(({ code }) => code)).toEqual(['limit']));
    expect(upstream.liveStreams).toBe(PLATFORM_STREAMS_MAX);
  });
});
