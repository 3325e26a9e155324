// libuv's handles as Node wraps them for itself: connections without net.Socket, which costs more than all that we do with one. As in
// node-internals, each part is looked for, and where one is missing everybody takes net.Socket; node-handles.test.ts says which way is taken.
//
// `process.binding` is how modules of others have reached these for ever. It is deprecated in words (DEP0111): Node prints so with
// --pending-deprecation alone, and throws where its permission model is on, which is one more way back.
import * as net from 'node:net';
import { SCRATCH } from '../bytes/read-buffers.ts';
import { areStaticReadsAllowed } from './node-internals.ts';

/** What a handle gives out when its peer has ended. The same on all systems. */
export const UV_EOF = -4095;

/** Beyond this the parts may look the same and be used in another way, and Node ends the process for that instead of throwing. */
const NEWEST_TRIED_MAJOR = 26;

/** Of a connection, over TCP or through a Unix socket. `this` of its callback is the handle. */
export interface StreamHandle {
  onread: (this: StreamHandle) => Buffer | undefined;
  /** Whose callbacks it has; ours alone. */
  duplex: unknown;
  useUserBuffer(view: Buffer): void;
  readStart(): number;
  readStop(): number;
  /** 0, or an error. The bytes and the request are Node's until `oncomplete` when the write was asynchronous; the memory is kept alive by us. */
  writeBuffer(request: WriteRequest, bytes: Buffer): number;
  /** 1: it is done already. */
  shutdown(request: HandleRequest): number;
  close(): void;
  setNoDelay(isOn: boolean): number;
  setKeepAlive(isOn: boolean, afterSecs: number): number;
  /** Of TCP only. */
  reset?: (() => number) | undefined;
  /** Of TCP only. 0 while the connection lives in at least one direction. */
  getpeername?(out: PeerName): number;
  getsockname?(out: PeerName): number;
  /** What libuv holds because the kernel has not taken it. */
  readonly writeQueueSize: number;
  /** What libuv was given. */
  readonly bytesWritten: number;
  readonly bytesRead: number;
}

export interface PeerName {
  address?: string;
  port?: number;
}

export interface HandleRequest {
  oncomplete: (this: this, status: number) => void;
  owner: unknown;
}

export interface WriteRequest extends HandleRequest {
  /** What is being written. */
  bytes: Buffer | null;
}

interface ConnectingHandle extends StreamHandle {
  connect(request: HandleRequest, address: string, port?: number): number;
  connect6(request: HandleRequest, address: string, port: number): number;
}

interface StreamWrap {
  readonly WriteWrap: new () => WriteRequest;
  readonly ShutdownWrap: new () => HandleRequest;
  /** What the last call has to say beside its result. */
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
}

export interface NodeHandles extends StreamWrap {
  readonly TCP: new (kind: number) => ConnectingHandle;
  readonly TCPConnectWrap: new () => HandleRequest;
  readonly Pipe: new (kind: number) => ConnectingHandle;
  readonly PipeConnectWrap: new () => HandleRequest;
  /** The kind of handle that connects. */
  readonly SOCKET: number;
}

let known: NodeHandles | null | undefined;

/** null: they are not to be had, or switched off together with static reads. */
export const nodeHandles = (): NodeHandles | null => {
  if (!areStaticReadsAllowed()) return null;
  if (known === undefined) known = findHandles((process as unknown as { binding?: Binding }).binding);
  return known;
};

export type Binding = (name: string) => Record<string, unknown>;

export const findHandles = (binding: Binding | undefined, version = process.versions.node): NodeHandles | null => {
  if (typeof binding !== 'function' || Number.parseInt(version, 10) > NEWEST_TRIED_MAJOR) return null;
  try {
    const parts = { ...binding('stream_wrap'), ...binding('pipe_wrap'), ...binding('tcp_wrap') };
    const { SOCKET } = (parts['constants'] ?? {}) as { SOCKET?: unknown };
    const found = { ...parts, SOCKET } as unknown as NodeHandles;
    return isComplete(found) ? found : null;
  } catch {
    return null;
  }
};

const CONSTRUCTORS = ['WriteWrap', 'ShutdownWrap', 'TCP', 'TCPConnectWrap', 'Pipe', 'PipeConnectWrap'] as const;
const NUMBERS = ['kReadBytesOrError', 'kLastWriteWasAsync', 'SOCKET'] as const;
const OF_STREAMS = ['useUserBuffer', 'readStart', 'readStop', 'writeBuffer', 'shutdown', 'close', 'connect'] as const;
const OF_TCP = ['reset', 'getpeername', 'getsockname', 'setNoDelay', 'setKeepAlive', 'connect6'] as const;
const PROPERTIES = ['onread', 'writeQueueSize', 'bytesWritten'] as const;

const isComplete = (found: NodeHandles): boolean => {
  if (!CONSTRUCTORS.every((name) => typeof found[name] === 'function')) return false;
  if (!NUMBERS.every((name) => typeof found[name] === 'number')) return false;
  if (!(found.streamBaseState instanceof Int32Array)) return false;
  const [tcp, pipe] = [found.TCP.prototype, found.Pipe.prototype] as [object, object];
  const has = (prototype: object, methods: readonly string[]): boolean =>
    methods.every((name) => typeof (prototype as Record<string, unknown>)[name] === 'function');
  if (!has(tcp, OF_STREAMS) || !has(pipe, OF_STREAMS) || !has(tcp, OF_TCP)) return false;
  return PROPERTIES.every((name) => name in tcp && name in pipe);
};

// ---- in and out of net ----

interface ListeningHandle {
  onconnection: (status: number, accepted?: StreamHandle) => void;
  setNoDelay?(isOn: boolean): number;
  setKeepAlive?(isOn: boolean, afterSecs: number): number;
}

/**
 * What a listening server accepts comes to `take` from here on, and the server knows nothing of it; `status` is not 0 for an accept that failed.
 * To be called at its event 'listening', before the loop could accept anything. Where its handle is not known it goes on as it did.
 */
export const takeAccepted = (
  server: net.Server,
  keepAliveSecs: number,
  take: (status: number, accepted: StreamHandle | undefined) => void,
): void => {
  const listening = (server as unknown as { _handle?: ListeningHandle | null })._handle;
  if (listening === null || listening === undefined || typeof listening.onconnection !== 'function') return;
  if (IS_INHERITED) {
    listening.setNoDelay?.(true);
    listening.setKeepAlive?.(true, keepAliveSecs);
  }
  listening.onconnection = (status, accepted) => {
    if (!IS_INHERITED && accepted !== undefined) {
      accepted.setNoDelay(true);
      accepted.setKeepAlive(true, keepAliveSecs);
    }
    take(status, accepted);
  };
};

/** A connection has on Linux what was set of its listener: five calls of the system fewer for each. */
const IS_INHERITED = process.platform === 'linux';

/**
 * A net.Socket around a handle that was read into memory of our own, for somebody who expects an ordinary stream: paused, and what comes is copied
 * out of the shared memory at once. Node has no way to take the first reader off again: this one stands above it.
 */
export const socketOf = (handle: StreamHandle): net.Socket => {
  const callback = (n: number): boolean => socket.push(Buffer.from(SCRATCH.view.subarray(0, n)));
  // `handle` and `pauseOnCreate` are what net.Server gives its own sockets; Node's types do not know them.
  const options = { handle, allowHalfOpen: true, pauseOnCreate: true, onread: { buffer: SCRATCH.view, callback } };
  const socket = new net.Socket(options as net.SocketConstructorOpts);
  return socket;
};
