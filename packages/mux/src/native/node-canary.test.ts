// Canaries for undocumented behavior of Node.js used by the mux, with a separate test for every part. The tests run against Node.js and
// not against our code. A failure names the part changed by a new Node.js version; our code then uses its fallback, or needs a new
// solution.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { PassThrough } from 'node:stream';
import * as tls from 'node:tls';
import { eventually, testCertificate } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';

interface Handle {
  reading: boolean;
  readonly writeQueueSize: number;
  useUserBuffer(buffer: Buffer): void;
  getpeername(out: object): number;
  readStart(): number;
  readStop(): number;
}
type Inside = net.Socket & { readonly _handle: Handle | null; [key: symbol]: unknown };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const listen = async (server: net.Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  return (server.address() as net.AddressInfo).port;
};

const own = (socket: net.Socket): net.Socket => {
  socket.on('error', () => {});
  cleanups.push(() => socket.destroy());
  return socket;
};

/** Creates both ends of a connection; `accepted` is paused and otherwise as accepted from the kernel. */
const plainPair = async (): Promise<{ accepted: Inside; peer: net.Socket }> => {
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true });
  const port = await listen(server);
  const accepting = once(server, 'connection') as Promise<[net.Socket]>;
  const peer = own(net.connect({ host: '127.0.0.1', port, allowHalfOpen: true }));
  const [accepted] = await accepting;
  return { accepted: own(accepted) as Inside, peer };
};

const tlsPair = async (): Promise<{ accepted: Inside; peer: net.Socket }> => {
  const server = tls.createServer({ ...testCertificate(), minVersion: 'TLSv1.3' });
  const port = await listen(server);
  const accepting = once(server, 'secureConnection') as Promise<[tls.TLSSocket]>;
  const peer = own(tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false }));
  const [accepted] = await accepting;
  return { accepted: own(accepted) as Inside, peer };
};

const PAIRS = [
  ['net.Socket', plainPair],
  ['tls.TLSSocket', tlsPair],
] as const;

const handleOf = (socket: Inside): Handle => {
  expect(socket._handle, 'socket._handle is gone').toBeTypeOf('object');
  return socket._handle as Handle;
};

const onreadSymbols = (): Record<'kBuffer' | 'kBufferCb' | 'kBufferGen', symbol> => {
  const probe = new net.Socket({
    onread: { buffer: Buffer.alloc(1), callback: () => true },
  } as net.SocketConstructorOpts);
  const byName = new Map(Object.getOwnPropertySymbols(probe).map((symbol) => [symbol.description, symbol]));
  probe.destroy();
  const found = (name: string): symbol => {
    expect(byName.get(name), `net.Socket has no symbol ${name} for its option onread`).toBeTypeOf('symbol');
    return byName.get(name) as symbol;
  };
  return { kBuffer: found('kBuffer'), kBufferCb: found('kBufferCb'), kBufferGen: found('kBufferGen') };
};

describe('Node.js internals for reads into our own memory', () => {
  it('net.Socket keeps its onread option under the symbols kBuffer, kBufferCb and kBufferGen', () => {
    onreadSymbols();
  });

  it.each(PAIRS)(
    '%s: _handle has useUserBuffer(), readStart(), readStop(), getpeername() and `reading`',
    async (_, pair) => {
      const handle = handleOf((await pair()).accepted);
      for (const method of ['useUserBuffer', 'readStart', 'readStop', 'getpeername'] as const) {
        expect(handle[method], `_handle.${method}()`).toBeTypeOf('function');
      }
      expect(handle.reading, '_handle.reading').toBeTypeOf('boolean');
    },
  );

  it.each(PAIRS)('%s: bytes arrive in the memory set through the symbols and useUserBuffer()', async (_, pair) => {
    const { accepted, peer } = await pair();
    const { kBuffer, kBufferCb, kBufferGen } = onreadSymbols();
    const first = Buffer.alloc(64);
    const second = Buffer.alloc(64);
    const nexts: (Buffer | null)[] = [second, null];
    const read: string[] = [];
    let present: Buffer = first;
    accepted.pause();
    accepted[kBuffer] = first;
    accepted[kBufferCb] = (n: number) => {
      read.push(present.toString('latin1', 0, n));
      return read.length !== 2;
    };
    accepted[kBufferGen] = () => {
      const next = nexts.shift() ?? null;
      present = next ?? present;
      return next;
    };
    handleOf(accepted).useUserBuffer(first);
    accepted.resume();
    peer.write('one');
    await eventually(() => expect(read).toEqual(['one']));
    expect(first.toString('latin1', 0, 3)).toBe('one');
    peer.write('two');
    // The generator returned null, so the same memory is reused. The callback returned false, so reading stops until resume().
    await eventually(() => expect(read).toEqual(['one', 'two']));
    peer.write('three');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(read, 'a callback that returns false stops reading').toHaveLength(2);
    accepted.resume();
    await eventually(() => expect(read).toEqual(['one', 'two', 'three']));
    expect(second.toString('latin1', 0, 5)).toBe('three');
  });

  it('net.connect takes a function for onread.buffer, and null reuses the same memory', async () => {
    const server = net.createServer((socket) => own(socket).write('hello'));
    const port = await listen(server);
    const memory = Buffer.alloc(64);
    const asked: (Buffer | null)[] = [memory, null, null];
    const read: number[] = [];
    const onread = {
      buffer: () => asked.shift() ?? null,
      callback: (n: number) => {
        read.push(n);
        return true;
      },
    };
    own(net.connect({ host: '127.0.0.1', port, onread } as unknown as net.TcpNetConnectOpts));
    await eventually(() => expect(read).toEqual([5]));
    expect(memory.toString('latin1', 0, 5)).toBe('hello');
  });

  it('read() returns buffered bytes until null, and `reading` and readStop() stop what read() started', async () => {
    const { accepted, peer } = await plainPair();
    const handle = handleOf(accepted);
    accepted.on('readable', () => {});
    peer.write('one');
    await eventually(() => expect(accepted.readableLength).toBe(3));
    peer.write('two');
    await eventually(() => expect(accepted.readableLength).toBe(6));
    accepted.removeAllListeners('readable');
    accepted.pause();
    let taken = '';
    // Since Node.js 26, read() returns a single chunk; earlier versions returned all buffered chunks.
    while (accepted.readableLength > 0) taken += String(accepted.read());
    expect(taken).toBe('onetwo');
    expect(handle.reading, 'read() asks for more').toBe(true);
    handle.reading = false;
    expect(handle.readStop()).toBe(0);
    peer.write('three');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(accepted.readableLength, 'readStop() stops').toBe(0);
    handle.reading = true;
    expect(handle.readStart()).toBe(0);
    await eventually(() => expect(accepted.readableLength).toBe(5));
  });

  it('read() of a stream returns all buffered bytes when called until null', () => {
    const stream = new PassThrough();
    stream.write('a');
    stream.write('b');
    let taken = '';
    for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null)
      taken += String(chunk);
    expect(taken).toBe('ab');
  });
});

describe('Node.js internals that tell an end from a reset', () => {
  it('_handle.getpeername() returns 0 after an end of the peer, and an error after its reset', async () => {
    const ended = await plainPair();
    const reset = await plainPair();
    for (const { accepted } of [ended, reset]) expect(handleOf(accepted).getpeername({})).toBe(0);
    const handle = handleOf(reset.accepted);
    ended.peer.end();
    reset.peer.resetAndDestroy();
    await eventually(() => expect(handle.getpeername({})).not.toBe(0));
    expect(handleOf(ended.accepted).getpeername({})).toBe(0);
  });

  it("a reset behind the last bytes is an error, or an 'end' that _handle.readStart() turns into an error", async () => {
    const { accepted, peer } = await plainPair();
    const handle = handleOf(accepted);
    peer.write('last bytes', () => peer.resetAndDestroy());
    await eventually(() => expect(handle.getpeername({})).not.toBe(0));
    let taken = '';
    let code: string | undefined;
    accepted.on('error', (error: NodeJS.ErrnoException) => {
      code = error.code;
    });
    accepted.on('data', (chunk: Buffer) => {
      taken += chunk.toString();
    });
    accepted.on('end', () => handle.readStart());
    accepted.resume();
    await eventually(() => expect(code).toBe('ECONNRESET'));
    expect(['', 'last bytes']).toContain(taken);
  });

  it("when both directions have ended, Node.js calls destroy() of the socket after the 'end' handlers", async () => {
    const { accepted, peer } = await plainPair();
    const calls: string[] = [];
    accepted.end();
    await once(accepted, 'finish');
    accepted.on('end', () => calls.push('end'));
    accepted.destroy = () => {
      calls.push('destroy');
      return accepted;
    };
    accepted.resume();
    peer.end();
    await eventually(() => expect(calls).toEqual(['end', 'destroy']));
  });
});

describe('Node.js internals that count unsent bytes', () => {
  it('_handle.writeQueueSize of a socket counts bytes that the kernel has not taken', async () => {
    const { accepted } = await plainPair();
    const handle = handleOf(accepted);
    expect(handle.writeQueueSize, '_handle.writeQueueSize').toBe(0);
    accepted.write(Buffer.alloc(32 * 1024 * 1024));
    expect(handle.writeQueueSize).toBeGreaterThan(0);
  });

  it('a socket under an HTTP/2 session has _handle.writeQueueSize, and its state has outboundQueueSize', async () => {
    const server = http2.createServer();
    const port = await listen(server);
    const connected = once(server, 'connection') as Promise<[net.Socket]>;
    const opened = once(server, 'session') as Promise<[http2.ServerHttp2Session]>;
    const client = http2.connect(`http://127.0.0.1:${port}`);
    client.on('error', () => {});
    cleanups.push(() => client.destroy());
    const [[socket], [session]] = await Promise.all([connected, opened]);
    cleanups.push(() => session.destroy());
    await once(client, 'remoteSettings');
    expect(handleOf(socket as Inside).writeQueueSize).toBeTypeOf('number');
    await eventually(() => expect(session.state.outboundQueueSize).toBe(0));
  });
});

it('a terminal as standard output has _handle.setBlocking()', ({ skip }) => {
  const program = 'process.stdout.write(process.stdout.isTTY + " " + typeof process.stdout._handle.setBlocking)';
  let said: string;
  try {
    const command = `'${process.execPath}' -e '${program}'`;
    said = execFileSync('script', ['-qec', command, '/dev/null'], { stdio: ['ignore', 'pipe', 'ignore'] }).toString();
  } catch {
    return skip('there is no util-linux script here');
  }
  expect(said.trim()).toBe('true function');
});
