// Everything that reaches into the private parts of Node.js, or works around what it does inside. Each function looks for what
// it needs, whatever the version, and has a soft way back where that is gone; node-internals.test.ts says which way is taken.
// (runtime's log outlet has one more, `setBlocking`: it stands below this package.)
import * as net from 'node:net';
import { TLSSocket } from 'node:tls';

// ---- reads into memory of our own ----
// Instead of a fresh Buffer per chunk. Node offers that for sockets it connects (`onread`); for accepted ones and for TLS we set
// what net.Socket itself would set. The way back are ordinary reads: same bytes, more CPU.

export type ReadPath = 'static' | 'fallback';

export interface StaticReader {
  /** Where the next bytes go. Asked once at the start and after every callback; null keeps the present memory. */
  nextView(): Buffer | null;
  /** n bytes were written to the current view; false stops reading until socket.resume(). */
  onRead(n: number): boolean;
  /** The fallback: a chunk that Node allocated and that now is ours. */
  onChunk(chunk: Buffer): boolean;
}

interface SocketHandle {
  reading: boolean;
  useUserBuffer?: (buffer: Buffer) => void;
  /** 0 while the connection lives in at least one direction. */
  getpeername?: (out: object) => number;
  /** Of TCP only. */
  reset?: (request: object) => number;
  readStart(): void;
  readStop(): void;
  /** What libuv holds because the kernel has not taken it. */
  writeQueueSize?: number;
  /** What libuv was given. */
  bytesWritten?: number;
  /** Below TLS: the connection itself. */
  _parent?: SocketHandle;
}
type SocketInside = net.Socket & { _handle: SocketHandle | null; [key: symbol]: unknown };

/** For tests and for a Node that has changed inside: every socket then takes the fallback. */
let staticAllowed = process.env['TUNNEL_STATIC_READ'] !== 'off';

export const allowStaticReads = (allowed: boolean): void => {
  staticAllowed = allowed;
};

export const areStaticReadsAllowed = (): boolean => staticAllowed;

/** From here on the socket reads through `reader`, paused until resume(). */
export const readStatically = (socket: net.Socket, reader: StaticReader): ReadPath => {
  const inside = socket as SocketInside;
  const symbols = onreadSymbols();
  if (!staticAllowed || symbols === null || typeof inside._handle?.useUserBuffer !== 'function') {
    return fallback(socket, reader);
  }
  socket.pause();
  // What the stream layer had taken before we came would be lost otherwise.
  for (const chunk of takeBuffered(inside)) reader.onChunk(chunk);
  const first = reader.nextView();
  if (first === null) return fallback(socket, reader);
  inside[symbols.buffer] = first;
  inside[symbols.callback] = (n: number) => reader.onRead(n);
  inside[symbols.next] = () => reader.nextView();
  // Exactly once per socket: each call pushes a listener inside Node.
  inside._handle.useUserBuffer(first);
  return 'static';
};

/** Of one that reads statically: the next bytes go there, whatever nextView() said last. */
export const readInto = (socket: net.Socket, view: Buffer): void => {
  const inside = socket as SocketInside;
  const symbols = onreadSymbols();
  if (symbols === null || typeof inside._handle?.useUserBuffer !== 'function') return;
  inside[symbols.buffer] = view;
  // One more listener inside Node, for as long as the connection lives: for one that is about to end.
  inside._handle.useUserBuffer(view);
};

/**
 * The way back from static reads, for one that somebody else takes over who expects an ordinary stream: paused, and what comes is copied out of
 * `view` at once, so that all may share it. Node has no way to take a listener off again: from here on this one stands above the first.
 */
export const readOrdinarily = (socket: net.Socket, view: Buffer): void => {
  socket.pause();
  // The fallback's.
  socket.removeAllListeners('data');
  const inside = socket as SocketInside;
  const symbols = onreadSymbols();
  if (symbols === null || typeof inside._handle?.useUserBuffer !== 'function' || !inside[symbols.buffer]) return;
  inside[symbols.buffer] = view;
  inside[symbols.callback] = (n: number) => socket.push(Buffer.from(view.subarray(0, n)));
  inside[symbols.next] = null;
  inside._handle.useUserBuffer(view);
};

/** A connection that is being dialled: for these Node offers static reads itself. Paused until resume(). */
export const dialStatically = (
  options: net.NetConnectOpts,
  reader: StaticReader,
): { socket: net.Socket; readPath: ReadPath } => {
  if (!staticAllowed) {
    const ordinary = net.connect(options);
    return { socket: ordinary, readPath: fallback(ordinary, reader) };
  }
  // Node takes null for "the same memory again"; its types do not say so.
  const onread = { buffer: () => reader.nextView(), callback: (n: number) => reader.onRead(n) };
  const socket = net.connect({ ...options, onread } as unknown as net.NetConnectOpts);
  socket.pause();
  return { socket, readPath: 'static' };
};

const fallback = (socket: net.Socket, reader: StaticReader): ReadPath => {
  socket.pause();
  socket.on('data', (chunk: Buffer) => {
    if (!reader.onChunk(chunk)) socket.pause();
  });
  return 'fallback';
};

const takeBuffered = (socket: SocketInside): Buffer[] => {
  const chunks: Buffer[] = [];
  while (socket.readableLength > 0) {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) break;
    chunks.push(chunk);
  }
  // read() asks the kernel for more at once; what comes from here on belongs to the new reader, after resume().
  if (socket._handle !== null && socket._handle.reading) {
    socket._handle.reading = false;
    socket._handle.readStop();
  }
  return chunks;
};

interface OnreadSymbols {
  readonly buffer: symbol;
  readonly callback: symbol;
  readonly next: symbol;
}

let known: OnreadSymbols | null | undefined;

const onreadSymbols = (): OnreadSymbols | null => {
  if (known !== undefined) return known;
  const onread = { buffer: Buffer.alloc(1), callback: () => true };
  const probe = new net.Socket({ onread } as net.SocketConstructorOpts);
  const byName = new Map(Object.getOwnPropertySymbols(probe).map((symbol) => [symbol.description, symbol]));
  probe.destroy();
  const buffer = byName.get('kBuffer');
  const callback = byName.get('kBufferCb');
  const next = byName.get('kBufferGen');
  known = buffer && callback && next ? { buffer, callback, next } : null;
  return known;
};

// ---- ends and resets ----

/**
 * To be called in the handler of 'end'; calls back at once or, when there is a doubt, two turns of the loop later, unless
 * 'error' or 'close' came instead. libuv takes a hang-up right behind the last bytes for an end, also when it was a reset:
 * a transfer that was cut off would look complete. The kernel, asked once more, says which it was.
 */
export const confirmEnd = (socket: net.Socket, onEnd: () => void): void => {
  const handle = (socket as SocketInside)._handle;
  // Whoever has only ended still has an address.
  if (typeof handle?.getpeername !== 'function' || handle.getpeername({}) === 0) return onEnd();
  // TLS passes nothing on behind an end: whoever asks hears nothing. But while we have not ended, it is over in both directions by a reset alone.
  if (handle._parent !== undefined && !socket.writableEnded) {
    socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
    return;
  }
  if (socket.writableFinished) skipNextDestroy(socket);
  handle.readStart();
  // The answer comes with the next poll: the first turn may be before it, the second is not.
  const settle = (): void => {
    if (socket.destroyed) return;
    onEnd();
    if (socket.writableFinished) socket.destroy();
  };
  setImmediate(() => setImmediate(settle));
};

/** With both directions ended Node destroys the socket as soon as the handlers of 'end' have returned; nobody could ask then. */
const skipNextDestroy = (socket: net.Socket): void => {
  const { destroy } = socket;
  socket.destroy = (error?: Error) => {
    socket.destroy = destroy;
    return error === undefined ? socket : socket.destroy(error);
  };
};

/**
 * Cuts a connection off, with a TCP reset where there is one to be had. While the socket's own end is on its way libuv refuses a
 * reset (EINVAL), and Node has let go of the handle by then: the descriptor would stay open for as long as the process lives. So
 * the end goes out first.
 */
export const resetSafely = (socket: net.Socket): void => {
  // Below TLS there is no reset to be had: its peer sees a close without the closing alert.
  if (socket.connecting || socket instanceof TLSSocket || isPipe(socket)) socket.destroy();
  else if (isEnding(socket)) socket.once('finish', () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
};

/** A Unix socket: it has no reset either, and Node throws when it is asked for one. */
const isPipe = (socket: net.Socket): boolean => {
  const handle = (socket as SocketInside)._handle;
  return handle !== null && handle !== undefined && typeof handle.reset !== 'function';
};

/** Everything before the end has left. The end itself takes one turn of the loop, whatever the peer does. */
const isEnding = (socket: net.Socket): boolean =>
  socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;

/**
 * The connection is over in both directions, whether or not anybody was told: only one that lives has an address at its other end. Below HTTP/2 and
 * TLS node forgets a write that failed, and reads no more while it waits for it.
 */
export const hasLostPeer = (socket: net.Socket): boolean => {
  const handle = (socket as SocketInside)._handle;
  return typeof handle?.getpeername === 'function' && handle.getpeername({}) !== 0;
};

// ---- what waits to be sent ----

/** HTTP/2 writes past the socket's own queue, and Node has no public word for what the kernel has not taken. 0 where it is not told. */
export const unsentBytes = (socket: net.Socket): number => (socket as SocketInside)._handle?.writeQueueSize ?? 0;

/**
 * What the kernel has taken since the connection began, of whatever passes on it: a peer that takes nothing shows by it, one that takes a
 * large write bit by bit as well. Public figures change with whole writes only, and are the way back.
 */
export const takenBytes = (socket: net.Socket): number => {
  const handle = (socket as SocketInside)._handle;
  const lowest = handle?._parent ?? handle;
  if (typeof lowest?.bytesWritten === 'number') return lowest.bytesWritten - (lowest.writeQueueSize ?? 0);
  return socket.bytesWritten - socket.writableLength;
};
