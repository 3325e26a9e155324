// Dials an address without net.Socket: a handle, a request, and a shared timer for all pending dials of a clock.
import { getSystemErrorName } from 'node:util';
import { LinkedSet, type ListNode } from '@tunnel/rules/collections';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import { HandleDuplex } from './handle-duplex.ts';
import type { HandleRequest, NodeHandles, StreamHandle } from './node-handles.ts';

/** Address to dial: IPv4 or IPv6 address with port, or path of a Unix socket. */
export type HandleAddress =
  | { readonly family: 4 | 6; readonly host: string; readonly port: number }
  | { readonly family: 'unix'; readonly path: string };

/** Timeout of an outgoing connection attempt, and the clock that measures it. */
export interface DialTime {
  readonly timeoutMs: number;
  readonly clock: MuxClock;
}

/** Callbacks of an outgoing connection attempt. Exactly one is called, once, and never synchronously. */
interface DialOutcome {
  readonly resolve: (duplex: HandleDuplex) => void;
  readonly reject: (error: Error) => void;
}

class Dial {
  /** List node of this connection attempt among pending attempts. */
  underWay: ListNode<Dial> | null = null;
  readonly deadlineMs: number;
  readonly #timeoutMs: number;
  readonly #handle: StreamHandle;
  readonly #node: NodeHandles;
  readonly #address: HandleAddress;
  readonly #outcome: DialOutcome;
  readonly #dials: OpenDials;

  constructor(address: HandleAddress, timeoutMs: number, node: NodeHandles, dials: OpenDials, outcome: DialOutcome) {
    this.#address = address;
    this.#timeoutMs = timeoutMs;
    this.deadlineMs = dials.clock.monotonic() + timeoutMs;
    this.#dials = dials;
    this.#node = node;
    this.#outcome = outcome;
    const isUnix = address.family === 'unix';
    const handle = isUnix ? new node.Pipe(node.SOCKET) : new node.TCP(node.SOCKET);
    this.#handle = handle;
    const request = isUnix ? new node.PipeConnectWrap() : new node.TCPConnectWrap();
    request.oncomplete = onConnected;
    request.owner = this;
    this.underWay = dials.underWay.add(this);
    let error: number | undefined;
    if (address.family === 'unix') error = handle.connect(request, address.path);
    else {
      // TCP_NODELAY is set before the handle has a file descriptor; libuv applies the option when it creates the descriptor.
      handle.setNoDelay(true);
      if (address.family === 4) error = handle.connect(request, address.host, address.port);
      else error = handle.connect6(request, address.host, address.port);
    }
    // When connecting to Unix sockets, some Node.js versions return undefined and report errors by callback.
    if (typeof error === 'number' && error !== 0) this.#fail(failureOf(error, address));
  }

  onConnected(status: number): void {
    // The connection attempt has timed out and was rejected already.
    if (!this.#dials.underWay.delete(this.underWay)) return;
    if (status !== 0) return this.#fail(failureOf(status, this.#address));
    this.#outcome.resolve(new HandleDuplex(this.#handle, this.#node));
  }

  onLate(): void {
    this.#fail(Object.assign(new Error(`no answer within ${this.#timeoutMs} ms`), { code: 'ETIMEDOUT' }));
  }

  #fail(error: Error): void {
    this.#dials.underWay.delete(this.underWay);
    this.#handle.close();
    this.#outcome.reject(error);
  }
}

function onConnected(this: HandleRequest, status: number): void {
  (this.owner as Dial).onConnected(status);
}

/** Creates the error of a failed connection attempt, with the message and fields of Node's own errors. */
const failureOf = (status: number, address: HandleAddress): NodeJS.ErrnoException => {
  const code = getSystemErrorName(status);
  const [at, where] =
    address.family === 'unix'
      ? [address.path, { address: address.path }]
      : [`${address.host}:${address.port}`, { address: address.host, port: address.port }];
  return Object.assign(new Error(`connect ${code} ${at}`), { errno: status, code, syscall: 'connect', ...where });
};

// ---- time limits ----

/** Pending connection attempts of a clock, and the timer that rejects late attempts. */
class OpenDials {
  readonly clock: MuxClock;
  readonly underWay = new LinkedSet<Dial>();
  #timer: MuxTimer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: MuxClock) {
    this.clock = clock;
  }

  /** Sets the timer. Nearly every dial completes long before its deadline; the timer then finds no dials and is not set again. */
  watch(deadlineMs: number): void {
    if (this.#timer !== null && this.#timerAtMs <= deadlineMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = deadlineMs;
    this.#timer = this.clock.setTimeout(this.#failLate, Math.max(1, deadlineMs - this.clock.monotonic()));
    // A pending connection attempt keeps the process alive, so the timeout's timer need not.
    this.#timer.unref?.();
  }

  readonly #failLate = (): void => {
    this.#timer = null;
    const nowMs = this.clock.monotonic();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const dial of [...this.underWay]) {
      if (dial.deadlineMs <= nowMs) dial.onLate();
      else nextMs = Math.min(nextMs, dial.deadlineMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.watch(nextMs);
  };
}

/** Pending connection attempts per clock. A process has a single clock, except in tests. */
const openDials = new WeakMap<MuxClock, OpenDials>();

const dialsOf = (clock: MuxClock): OpenDials => {
  const known = openDials.get(clock);
  if (known !== undefined) return known;
  const dials = new OpenDials(clock);
  openDials.set(clock, dials);
  return dials;
};

/** Connects to the address with a native handle. Rejects with the same errors as net.connect. */
export const dialHandle = (
  address: HandleAddress,
  { timeoutMs, clock }: DialTime,
  node: NodeHandles,
): Promise<HandleDuplex> =>
  new Promise((resolve, reject) => {
    const dials = dialsOf(clock);
    dials.watch(new Dial(address, timeoutMs, node, dials, { resolve, reject }).deadlineMs);
  });
