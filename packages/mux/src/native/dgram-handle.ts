// Datagrams directly through the libuv handle inside a dgram socket. node:dgram checks its arguments, looks up the address and emits an
// event for every datagram, which costs more CPU than our own work per datagram. As in node-handles, every private part is checked, and
// the public methods are used if any is missing. dgram-handle.test.ts shows which variant is used.
import type { RemoteInfo, Socket } from 'node:dgram';
import { getSystemErrorName } from 'node:util';
import { type Guarded, guard } from '../loop/guard.ts';
import { type Binding, isTriedVersion } from './node-handles.ts';
import { areStaticReadsAllowed } from './node-internals.ts';

type OnMessage = (this: unknown, nread: number, handle: unknown, bytes: Buffer, from: RemoteInfo) => void;

interface UdpHandle {
  onmessage: OnMessage;
  /** Returns the size plus 1 if the kernel accepted the datagram, 0 if the datagram is queued, or an error code below 0. */
  send(request: SendRequest, list: Buffer[], count: number, port: number, address: string, callsBack: boolean): number;
  /** The same for a connected socket. */
  send(request: SendRequest, list: Buffer[], count: number, callsBack: boolean): number;
}

interface SendRequest {
  oncomplete: (status: number) => void;
  /** Keeps the memory of a queued datagram alive. */
  list: Buffer[];
}

/** Returns Node's constructor of send requests, or null if it is not available, or disabled together with static reads. */
const sendRequests = (): (new () => SendRequest) | null => {
  if (!areStaticReadsAllowed()) return null;
  if (known === undefined) known = findSendRequests((process as unknown as { binding?: Binding }).binding);
  return known;
};
let known: (new () => SendRequest) | null | undefined;

export const findSendRequests = (
  binding: Binding | undefined,
  version = process.versions.node,
): (new () => SendRequest) | null => {
  if (typeof binding !== 'function' || !isTriedVersion(version)) return null;
  try {
    const { SendWrap } = binding('udp_wrap');
    return typeof SendWrap === 'function' ? (SendWrap as new () => SendRequest) : null;
  } catch {
    return null;
  }
};

/** Returns the handle of an open dgram socket, or null if Node.js keeps the handle somewhere else. */
const handleOf = (socket: Socket): UdpHandle | null => {
  const inside = socket as unknown as Record<symbol, { handle?: Partial<UdpHandle> | null } | undefined>;
  stateSymbol ??= Object.getOwnPropertySymbols(inside).find(({ description }) => description === 'state symbol');
  const handle = stateSymbol === undefined ? undefined : inside[stateSymbol]?.handle;
  return typeof handle?.send === 'function' ? (handle as UdpHandle) : null;
};
let stateSymbol: symbol | undefined;

const NO_BYTES = Buffer.alloc(0);

/** Request and list of the next datagram of any socket. Node.js keeps them only for a queued datagram; then others take their place. */
let spare: { readonly request: SendRequest; readonly list: Buffer[] } | null = null;

/** Sends datagrams of a bound or connected socket, which must be open. */
export class DatagramSender {
  /** True if the last datagram was queued, because the kernel's buffer is full. */
  isBehind = false;
  readonly #socket: Socket;
  readonly #onError: ((error: Error) => void) | null;
  #handle: UdpHandle | null | undefined;

  /** `onError` is called in a later turn for every datagram that the system rejected. Without it, errors are ignored. */
  constructor(socket: Socket, onError: ((error: Error) => void) | null = null) {
    this.#socket = socket;
    this.#onError = onError;
  }

  /**
   * Sends a datagram, to the connected address if none is given. Returns true if the memory is free again. Returns false if the datagram
   * is queued: its memory must not be changed any more.
   */
  send(bytes: Buffer, port = 0, address = ''): boolean {
    const Request = sendRequests();
    this.#handle ??= Request === null ? null : handleOf(this.#socket);
    const handle = this.#handle;
    if (Request === null || handle === null) return this.#sendPublicly(bytes, port, address);
    spare ??= { request: new Request(), list: [] };
    const { request, list } = spare;
    list[0] = bytes;
    const result =
      port === 0 ? handle.send(request, list, 1, true) : handle.send(request, list, 1, port, address, true);
    this.isBehind = result === 0;
    if (result === 0) {
      this.#queued(request, list);
      return false;
    }
    // The spare request outlives the socket, so it must not hold the datagram.
    list[0] = NO_BYTES;
    if (result < 0) this.#failed(result);
    return true;
  }

  #queued(request: SendRequest, list: Buffer[]): void {
    spare = null;
    request.list = list;
    request.oncomplete = (status) => {
      if (status < 0) this.#failed(status);
    };
  }

  /** Reports in a later turn, as node:dgram does, so that an error never ends a flow in the middle of a call. */
  #failed(status: number): void {
    const onError = this.#onError;
    if (onError === null) return;
    const code = getSystemErrorName(status);
    process.nextTick(() => onError(Object.assign(new Error(`send ${code}`), { code, syscall: 'send' })));
  }

  #sendPublicly(bytes: Buffer, port: number, address: string): boolean {
    const onSent = (error: Error | null): void => {
      if (error !== null) this.#onError?.(error);
    };
    const callback = this.#onError === null ? undefined : onSent;
    if (port === 0) this.#socket.send(bytes, callback);
    else this.#socket.send(bytes, port, address, callback);
    this.isBehind = this.#socket.getSendQueueCount() > 0;
    return !this.isBehind;
  }
}

/** Calls `act` for every datagram of a socket. `act` is guarded like an event listener; errors of the socket stay events. */
export const receiveDatagrams = (
  socket: Socket,
  owner: Guarded,
  scope: string,
  act: (bytes: Buffer, from: RemoteInfo) => void,
): void => {
  guard.listen(socket, 'message', owner, scope, act);
  const listener = socket.listeners('message').at(-1) as typeof act | undefined;
  const take = (): void => {
    const handle = sendRequests() === null ? null : handleOf(socket);
    const emit = handle?.onmessage;
    if (handle === null || typeof emit !== 'function') return;
    handle.onmessage = (nread, same, bytes, from) => {
      if (nread < 0) emit.call(handle, nread, same, bytes, from);
      else listener?.(bytes, from);
    };
  };
  // node:dgram sets its own callback when it begins to receive.
  if (typeof handleOf(socket)?.onmessage === 'function') take();
  else socket.once('listening', take);
};
