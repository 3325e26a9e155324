// Dials an address without net.Socket: one handle, one request, and one timer for all dials that are under way on the same clock.
import { getSystemErrorName } from 'node:util';
import { LinkedSet, type ListNode } from '@tunnel/rules/collections';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import { HandleDuplex } from './handle-duplex.ts';
import type { HandleRequest, NodeHandles, StreamHandle } from './node-handles.ts';

/** A literal address, IPv4 or IPv6, or the path of a Unix socket. */
export type HandleAddress =
  | { readonly family: 4 | 6; readonly host: string; readonly port: number }
  | { readonly family: 'unix'; readonly path: string };

/** How long a dial may take, by which clock. */
export interface DialTime {
  readonly timeoutMs: number;
  readonly clock: MuxClock;
}

/** One of the two, once, and never within the call that dialled. */
interface DialOutcome {
  readonly resolve: (duplex: HandleDuplex) => void;
  readonly reject: (error: Error) => void;
}

class Dial {
  /** Its place among those under way. */
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
      // Before there is a descriptor: libuv sets it together with the rest.
      handle.setNoDelay(true);
      if (address.family === 4) error = handle.connect(request, address.host, address.port);
      else error = handle.connect6(request, address.host, address.port);
    }
    // Some versions say nothing for Unix sockets, and call back.
    if (typeof error === 'number' && error !== 0) this.#fail(failureOf(error, address));
  }

  onConnected(status: number): void {
    // It took too long, and is told so already.
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

/** With the words and fields of Node's own. */
const failureOf = (status: number, address: HandleAddress): NodeJS.ErrnoException => {
  const code = getSystemErrorName(status);
  const [at, where] =
    address.family === 'unix'
      ? [address.path, { address: address.path }]
      : [`${address.host}:${address.port}`, { address: address.host, port: address.port }];
  return Object.assign(new Error(`connect ${code} ${at}`), { errno: status, code, syscall: 'connect', ...where });
};

// ---- time limits ----

/** The dials of one clock, and the timer that fails those that take too long. */
class OpenDials {
  readonly clock: MuxClock;
  readonly underWay = new LinkedSet<Dial>();
  #timer: MuxTimer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: MuxClock) {
    this.clock = clock;
  }

  /** Nearly every dial is over long before; the timer then finds nobody, and is not set again. */
  watch(deadlineMs: number): void {
    if (this.#timer !== null && this.#timerAtMs <= deadlineMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = deadlineMs;
    this.#timer = this.clock.setTimeout(this.#failLate, Math.max(1, deadlineMs - this.clock.monotonic()));
    // A dial keeps the process alive by itself.
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

/** A process has one clock, unless it runs tests. */
const openDials = new WeakMap<MuxClock, OpenDials>();

const dialsOf = (clock: MuxClock): OpenDials => {
  const known = openDials.get(clock);
  if (known !== undefined) return known;
  const dials = new OpenDials(clock);
  openDials.set(clock, dials);
  return dials;
};

/** Rejects as net.connect would fail. */
export const dialHandle = (
  address: HandleAddress,
  { timeoutMs, clock }: DialTime,
  node: NodeHandles,
): Promise<HandleDuplex> =>
  new Promise((resolve, reject) => {
    const dials = dialsOf(clock);
    dials.watch(new Dial(address, timeoutMs, node, dials, { resolve, reject }).deadlineMs);
  });
