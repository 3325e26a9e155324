// All code that uses private parts of Node.js or works around its internal behavior. Each function checks for the parts it needs, and falls
// back to public API if any are missing. node-internals.test.ts shows which variant is used. (The log output in the runtime package and
// the client's terminal also use a private part, `setBlocking`, because they cannot import this package.)
import * as net from 'node:net';
import { TLSSocket } from 'node:tls';
import { SCRATCH } from '../bytes/read-buffers.ts';

// ---- reads into memory of our own ----
// Avoids a new Buffer per chunk. Node.js supports this for outgoing sockets (`onread`); for accepted sockets and TLS we set the same fields
// as net.Socket. The fallback are ordinary reads: same bytes, more CPU.

export type ReadPath = 'static' | 'fallback';

export interface StaticReader {
  /** Returns the buffer for the next bytes. Called at the start and after every callback. Null keeps the current buffer. */
  nextView(): Buffer | null;
  /** Called after n bytes were written to the current view. Returns false to pause reading until socket.resume(). */
  onRead(n: number): boolean;
  /** Called by the fallback with a chunk allocated by Node.js. The callee owns the chunk. */
  onChunk(chunk: Buffer): boolean;
}

interface SocketHandle {
  reading: boolean;
  useUserBuffer?: (buffer: Buffer) => void;
  /** Queries the peer's address. Returns 0 while the connection is open in at least one direction. */
  getpeername?: (out: object) => number;
  /** Resets the connection. Exists only on TCP handles. */
  reset?: (request: object) => number;
  readStart(): void;
  readStop(): void;
  /** Bytes queued in libuv for the socket that the kernel has not accepted. */
  writeQueueSize?: number;
  /** Total bytes of the socket passed to libuv for writing. */
  bytesWritten?: number;
  /** Handle of the TCP connection below a TLS handle. */
  _parent?: SocketHandle;
}
type SocketInside = net.Socket & { _handle: SocketHandle | null; [key: symbol]: unknown };

/** If false, all sockets read through the stream layer of Node.js. For tests, and for Node.js versions with different internals. */
let staticAllowed = process.env['TUNNEL_STATIC_READ'] !== 'off';

export const allowStaticReads = (allowed: boolean): void => {
  staticAllowed = allowed;
};

export const areStaticReadsAllowed = (): boolean => staticAllowed;

/** Makes the socket read through `reader`. The socket is paused until resume(). */
export const readStatically = (socket: net.Socket, reader: StaticReader): ReadPath => {
  const inside = socket as SocketInside;
  const symbols = onreadSymbols();
  if (!staticAllowed || symbols === null || typeof inside._handle?.useUserBuffer !== 'function') {
    return fallback(socket, reader);
  }
  socket.pause();
  // Chunks already buffered by Node's stream layer are passed to the reader first, because they would be lost otherwise.
  for (const chunk of takeBuffered(inside)) reader.onChunk(chunk);
  const first = reader.nextView();
  if (first === null) return fallback(socket, reader);
  inside[symbols.buffer] = first;
  inside[symbols.callback] = (n: number) => reader.onRead(n);
  inside[symbols.next] = () => reader.nextView();
  // useUserBuffer() must be called only once per socket, because every call adds a listener inside Node.js.
  inside._handle.useUserBuffer(first);
  return 'static';
};

/** Redirects the next bytes of a socket with static reads to `view`, overriding the last nextView(). */
export const readInto = (socket: net.Socket, view: Buffer): void => {
  const inside = socket as SocketInside;
  const symbols = onreadSymbols();
  if (symbols === null || typeof inside._handle?.useUserBuffer !== 'function') return;
  inside[symbols.buffer] = view;
  // Adds a listener inside Node.js that stays for the connection's lifetime. Acceptable only for a connection that is about to end.
  inside._handle.useUserBuffer(view);
};

/**
 * Returns from static reads to an ordinary stream, for a new owner of the socket. The socket is paused. Node.js cannot remove the first
 * listener, so a second listener is put on top.
 */
export const readOrdinarily = (socket: net.Socket): void => {
  socket.pause();
  // Removes the fallback's 'data' listener from the socket.
  socket.removeAllListeners('data');
  const symbols = onreadSymbols();
  if (symbols !== null && (socket as SocketInside)[symbols.buffer]) readThroughScratch(socket);
};

/**
 * Lets an ordinary stream read into the shared scratch buffer, and copies the received bytes out at once. Node.js otherwise allocates 64
 * KiB per read. Hundreds of connections with a few bytes every few seconds then cause full garbage collections. Has no effect if Node's
 * internals are not available.
 */
export const readThroughScratch = (socket: net.Socket): void => {
  const inside = socket as SocketInside;
  const symbols = onreadSymbols();
  if (!staticAllowed || symbols === null || typeof inside._handle?.useUserBuffer !== 'function') return;
  const { view } = SCRATCH;
  inside[symbols.buffer] = view;
  inside[symbols.callback] = (n: number) => socket.push(Buffer.from(view.subarray(0, n)));
  inside[symbols.next] = null;
  inside._handle.useUserBuffer(view);
};

/** Dials with static reads, which Node.js supports for outgoing connections. The socket is paused until resume(). */
export const dialStatically = (
  options: net.NetConnectOpts,
  reader: StaticReader,
): { socket: net.Socket; readPath: ReadPath } => {
  if (!staticAllowed) {
    const ordinary = net.connect(options);
    return { socket: ordinary, readPath: fallback(ordinary, reader) };
  }
  // Node.js accepts null for "keep the same buffer"; its type definitions do not.
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
  // read() immediately starts another kernel read. Later bytes belong to the new reader, after resume().
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
 * Call in the 'end' handler. Calls `onEnd` at once or, in doubtful cases, two event loop turns later, unless 'error' or 'close' comes
 * first. libuv reports a hang-up directly behind the last bytes as an end, even if it was a reset, so that an interrupted transfer would
 * look complete. Reading once more makes the kernel report which of the two it was.
 */
export const confirmEnd = (socket: net.Socket, onEnd: () => void): void => {
  const handle = (socket as SocketInside)._handle;
  // A connection with only one direction ended still has a peer address.
  if (typeof handle?.getpeername !== 'function' || handle.getpeername({}) === 0) return onEnd();
  // TLS passes on no reads behind an end, so another read cannot tell. But while our direction is open, only a reset can have closed both
  // directions.
  if (handle._parent !== undefined && !socket.writableEnded) {
    socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
    return;
  }
  if (socket.writableFinished) skipNextDestroy(socket);
  handle.readStart();
  // The result comes with the next poll, which is certainly before the second event loop turn from now.
  const settle = (): void => {
    if (socket.destroyed) return;
    onEnd();
    if (socket.writableFinished) socket.destroy();
  };
  setImmediate(() => setImmediate(settle));
};

/**
 * Suppresses Node's next destroy(). After both directions ended, Node.js destroys the socket when the 'end' handlers return, and the kernel
 * could not be asked any more.
 */
const skipNextDestroy = (socket: net.Socket): void => {
  const { destroy } = socket;
  socket.destroy = (error?: Error) => {
    socket.destroy = destroy;
    return error === undefined ? socket : socket.destroy(error);
  };
};

/**
 * Closes a connection, with a TCP reset if possible. libuv refuses a reset (EINVAL) while the shutdown is pending, and Node.js has released
 * the handle by then, so the file descriptor would leak. The reset therefore waits for the shutdown.
 */
export const resetSafely = (socket: net.Socket): void => {
  // A reset is not possible below TLS. The peer sees a close without the closing alert.
  if (socket.connecting || socket instanceof TLSSocket || isPipe(socket)) socket.destroy();
  else if (isEnding(socket)) socket.once('finish', () => socket.resetAndDestroy());
  else socket.resetAndDestroy();
};

/** True for a Unix socket, which has no reset; Node.js throws on an attempt. */
const isPipe = (socket: net.Socket): boolean => {
  const handle = (socket as SocketInside)._handle;
  return handle !== null && handle !== undefined && typeof handle.reset !== 'function';
};

/** True if all bytes have been sent and the shutdown is pending. The shutdown takes one event loop turn regardless of the peer. */
const isEnding = (socket: net.Socket): boolean =>
  socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;

/**
 * True if the connection is closed in both directions, even if no event reported it: only an open connection has a peer address. Below
 * HTTP/2 and TLS, Node.js forgets a failed write and stops reading while it waits for the write.
 */
export const hasLostPeer = (socket: net.Socket): boolean => {
  const handle = (socket as SocketInside)._handle;
  return typeof handle?.getpeername === 'function' && handle.getpeername({}) !== 0;
};

// ---- what waits to be sent ----

/**
 * Returns bytes that the kernel has not accepted, or 0 if unknown. HTTP/2 bypasses the socket's queue, and Node.js has no public API for
 * the value.
 */
export const unsentBytes = (socket: net.Socket): number => (socket as SocketInside)._handle?.writeQueueSize ?? 0;

/**
 * Returns the total bytes accepted by the kernel, for any protocol on the socket. Shows whether the peer reads at all, even if it reads a
 * large write in small parts. Falls back to the public counters, which change only with whole writes.
 */
export const takenBytes = (socket: net.Socket): number => {
  const handle = (socket as SocketInside)._handle;
  const lowest = handle?._parent ?? handle;
  if (typeof lowest?.bytesWritten === 'number') return lowest.bytesWritten - (lowest.writeQueueSize ?? 0);
  return socket.bytesWritten - socket.writableLength;
};
