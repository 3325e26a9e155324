// libuv handles as wrapped inside Node.js: connections without net.Socket, which costs more CPU than all our work per connection. As in
// node-internals, every private part is checked, and net.Socket is used if any is missing. node-handles.test.ts shows which variant is used.
//
// `process.binding` is the traditional access for third-party modules. It is deprecated in the documentation only (DEP0111): Node.js warns
// with --pending-deprecation, and throws if its permission model is enabled, in which case net.Socket is used as well.
import * as net from 'node:net';
import { SCRATCH } from '../bytes/read-buffers.ts';
import { areStaticReadsAllowed } from './node-internals.ts';

/** Read result after the peer has ended. The same value on all systems. */
export const UV_EOF = -4095;

/**
 * Newest Node.js major version tested. In later versions the internals may look the same but behave differently, and Node.js aborts the
 * process on misuse instead of throwing.
 */
const NEWEST_TRIED_MAJOR = 26;

export const isTriedVersion = (version: string): boolean => Number.parseInt(version, 10) <= NEWEST_TRIED_MAJOR;

/** Handle of a TCP or Unix connection. Callbacks run with the handle as `this`. */
export interface StreamHandle {
  onread: (this: StreamHandle) => Buffer | undefined;
  /** Object that handles the callbacks of the native handle. Added by this package; Node.js does not use the field. */
  duplex: unknown;
  useUserBuffer(view: Buffer): void;
  readStart(): number;
  readStop(): number;
  /**
   * Returns 0 or an error code. If the write is asynchronous, Node.js uses the bytes and the request until `oncomplete`, and the caller
   * must keep the memory alive.
   */
  writeBuffer(request: WriteRequest, bytes: Buffer): number;
  /** Shuts down the sending direction. Returns 1 if the shutdown is complete already. */
  shutdown(request: HandleRequest): number;
  close(): void;
  setNoDelay(isOn: boolean): number;
  setKeepAlive(isOn: boolean, afterSecs: number): number;
  /** Resets the connection. Exists only on TCP handles. */
  reset?: (() => number) | undefined;
  /** TCP only. Returns 0 while the connection is open in at least one direction. */
  getpeername?(out: PeerName): number;
  getsockname?(out: PeerName): number;
  /** Bytes queued in libuv for the connection that the kernel has not accepted. */
  readonly writeQueueSize: number;
  /** Total bytes of the connection passed to libuv for writing. */
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
  /** Bytes being written. The reference keeps the buffer alive until the write has completed. */
  bytes: Buffer | null;
}

/** Object on whose behalf bytes are written. Called from Node.js when an asynchronous write has completed, with 0 or an error code. */
export interface WriteOwner {
  onWritten(status: number): void;
}

interface ConnectingHandle extends StreamHandle {
  connect(request: HandleRequest, address: string, port?: number): number;
  connect6(request: HandleRequest, address: string, port: number): number;
}

interface StreamWrap {
  readonly WriteWrap: new () => WriteRequest;
  readonly ShutdownWrap: new () => HandleRequest;
  /** Array in which Node.js stores additional results of the last native stream call. */
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
}

export interface NodeHandles extends StreamWrap {
  readonly TCP: new (kind: number) => ConnectingHandle;
  readonly TCPConnectWrap: new () => HandleRequest;
  readonly Pipe: new (kind: number) => ConnectingHandle;
  readonly PipeConnectWrap: new () => HandleRequest;
  /** Type constant for native handles that connect or were accepted (as opposed to handles that listen). */
  readonly SOCKET: number;
}

let known: NodeHandles | null | undefined;

/** Returns null if the handles are not available, or disabled together with static reads. */
export const nodeHandles = (): NodeHandles | null => {
  if (!areStaticReadsAllowed()) return null;
  if (known === undefined) known = findHandles((process as unknown as { binding?: Binding }).binding);
  return known;
};

export type Binding = (name: string) => Record<string, unknown>;

export const findHandles = (binding: Binding | undefined, version = process.versions.node): NodeHandles | null => {
  if (typeof binding !== 'function' || !isTriedVersion(version)) return null;
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

// ---- writing ----

/** Request for the next write of any connection. A request is reused unless its write is asynchronous. Has neither an owner nor bytes. */
let spareRequest: WriteRequest | null = null;

/**
 * Writes bytes to a handle. Returns 1 if the kernel accepted all bytes and their memory is free, 0 if the memory is in use until
 * `owner.onWritten`, or an error code below 0. With TLS, `owner.onWritten` can report a failed write within the call.
 */
export const writeTo = (handle: StreamHandle, node: NodeHandles, bytes: Buffer, owner: WriteOwner): number => {
  spareRequest ??= new node.WriteWrap();
  const request = spareRequest;
  request.oncomplete = onWritten;
  request.owner = owner;
  const error = handle.writeBuffer(request, bytes);
  if (error !== 0 || node.streamBaseState[node.kLastWriteWasAsync] === 0) {
    request.owner = null;
    return error === 0 ? 1 : error;
  }
  request.bytes = bytes;
  spareRequest = null;
  return 0;
};

/** Callback for Node.js, shared by all writes. */
function onWritten(this: WriteRequest, status: number): void {
  this.bytes = null;
  (this.owner as WriteOwner).onWritten(status);
}

// ---- in and out of net ----

interface ListeningHandle {
  onconnection: (status: number, accepted?: StreamHandle) => void;
  setNoDelay?(isOn: boolean): number;
  setKeepAlive?(isOn: boolean, afterSecs: number): number;
}

/**
 * Passes connections accepted by a listening server to `take` instead of the server. `status` is not 0 for a failed accept. Must be called
 * in the 'listening' event, before the first accept. Has no effect if the server's handle is unknown.
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

/** On Linux, accepted connections inherit the socket options of the listener, which saves five system calls per connection. */
const IS_INHERITED = process.platform === 'linux';

/**
 * Wraps a handle in a net.Socket for code that expects an ordinary stream. The socket is paused, and received bytes are copied out of the
 * shared buffer at once. Node.js cannot remove the first reader, so a second reader is put on top.
 */
export const socketOf = (handle: StreamHandle): net.Socket => {
  const callback = (n: number): boolean => socket.push(Buffer.from(SCRATCH.view.subarray(0, n)));
  // net.Server passes `handle` and `pauseOnCreate` to its sockets. Node's type definitions lack both options.
  const options = { handle, allowHalfOpen: true, pauseOnCreate: true, onread: { buffer: SCRATCH.view, callback } };
  const socket = new net.Socket(options as net.SocketConstructorOpts);
  return socket;
};
