// ByteDuplex on a native libuv handle, with the same guarantees as SocketDuplex but without net.Socket, its events and its ticks. A
// connection costs one object, no closure and no timer; an idle connection holds no buffer.
import type { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { StreamReason } from '@tunnel/protocol';
import type { SocketEnd, SocketHolder } from '../bytes/byte-duplex.ts';
import { ByteQueue, giveBackBlock, type QueueBlock } from '../bytes/byte-queue.ts';
import { copyOf, SCRATCH } from '../bytes/read-buffers.ts';
import { abandonOrDestroy } from '../loop/guard.ts';
import {
  type HandleRequest,
  type NodeHandles,
  type PeerName,
  type StreamHandle,
  socketOf,
  UV_EOF,
  type WriteOwner,
  writeTo,
} from './node-handles.ts';
import { PacedReads } from './paced-reads.ts';
import { RESET_BY_PEER, securedSocketOf, type TlsHandle } from './tls-handle.ts';

const nobodyWaits = (): void => {};

export class HandleDuplex extends PacedReads implements SocketEnd, WriteOwner {
  /** Handle for reads and writes: the connection's handle, or the TLS handle on top of it. */
  #handle: StreamHandle;
  /** Native handle of the connection itself, even if TLS is used on top. */
  readonly wire: StreamHandle;
  /** Number of the last callback that read from this connection; -1 before the first. */
  readCall = -1;
  #isClosed = false;
  #peer: PeerName | null = null;
  readonly #node: NodeHandles;
  #holder: SocketHolder | null = null;
  #isReading = false;
  #hasMemory = false;
  #input: 'open' | 'doubted' | 'ended' = 'open';
  #output: 'open' | 'ending' | 'ended' = 'open';
  /** True while the kernel has not accepted all bytes. Later writes are queued here, in order. */
  #isWaiting = false;
  #queue: ByteQueue | null = null;
  /** Block of the queue that the kernel has not fully accepted yet. */
  #block: QueueBlock | null = null;
  #endAsked: (() => void) | null = null;

  constructor(handle: StreamHandle, node: NodeHandles) {
    super();
    this.#handle = handle;
    this.wire = handle;
    this.#node = node;
    handle.duplex = this;
    handle.onread = onRead;
  }

  get readPath(): 'static' {
    return 'static';
  }

  get queuedBytes(): number {
    if (!this.#isWaiting || this.isOver) return 0;
    const below = this.#handle === this.wire ? 0 : this.wire.writeQueueSize;
    return below + this.#handle.writeQueueSize + (this.#queue?.length ?? 0);
  }

  get takenBytes(): number {
    return this.wire.bytesWritten - this.wire.writeQueueSize;
  }

  get hasLostPeer(): boolean {
    return this.wire.getpeername !== undefined && this.wire.getpeername({}) !== 0;
  }

  get bytesRead(): number {
    return this.#handle.bytesRead;
  }

  get destroyed(): boolean {
    return this.isOver;
  }

  /** IP address of the peer. Undefined if the peer has already disconnected. */
  get remoteAddress(): string | undefined {
    return this.#peerName().address;
  }

  get remotePort(): number | undefined {
    return this.#peerName().port;
  }

  /** Local address of the connection. Undefined if the peer has already disconnected. */
  get localAddress(): string | undefined {
    return this.#ownName().address;
  }

  get localPort(): number | undefined {
    return this.#ownName().port;
  }

  /** Queries the kernel on every call. Few connections need the address, and at most once. */
  #ownName(): PeerName {
    const name: PeerName = {};
    if (!this.#isClosed) this.wire.getsockname?.(name);
    return name;
  }

  /** Returns the peer's address and port. Queries the kernel once and caches the result. */
  #peerName(): PeerName {
    if (this.#peer === null) {
      this.#peer = {};
      if (!this.#isClosed) this.wire.getpeername?.(this.#peer);
    }
    return this.#peer;
  }

  /** Sets the owner to notify when the connection has closed. A connection has a single owner, set after accept. */
  heldBy(holder: SocketHolder): void {
    this.#holder = holder;
  }

  /** Starts TLS: from now on the TLS handle is read and written instead of the connection's handle. */
  secure(handle: StreamHandle): void {
    this.#handle = handle;
    handle.duplex = this;
    handle.onread = onRead;
    handle.useUserBuffer(SCRATCH.view);
  }

  // ---- reading ----

  protected goOnReading(): void {
    if (this.#isReading || this.#input !== 'open') return;
    this.#isReading = true;
    if (!this.#hasMemory) {
      this.#hasMemory = true;
      this.#handle.useUserBuffer(SCRATCH.view);
    }
    this.#handle.readStart();
  }

  protected readInto(view: Buffer): void {
    // Adds a listener inside Node.js that stays for the connection's lifetime. Acceptable only for a connection that is about to end.
    this.#handle.useUserBuffer(view);
  }

  /**
   * Called by the handle with bytes, an end or an error. `isNext` is true if the last callback was for this connection, too. Returns the
   * buffer for the next read, or undefined to keep the current buffer.
   */
  onReadable(isNext: boolean): Buffer | undefined {
    const n = this.#node.streamBaseState[this.#node.kReadBytesOrError] as number;
    if (n > 0) {
      if (!this.onRead(n)) this.#stopReading();
      return this.nextView() ?? undefined;
    }
    if (n === 0 || this.isOver) return undefined;
    if (n === UV_EOF) this.#onEnd(isNext);
    else this.#loseWith(n);
    return undefined;
  }

  #stopReading(): void {
    if (!this.#isReading || this.isOver) return;
    this.#isReading = false;
    this.#handle.readStop();
  }

  /**
   * libuv reports a hang-up directly behind the last bytes as an end, even if it was a reset, so that an interrupted transfer would look
   * complete. This happens only in the same event as the last bytes; an end in a separate event was read from the kernel and is real.
   */
  #onEnd(isNext: boolean): void {
    this.#isReading = false;
    if (this.#input !== 'open') return;
    this.#input = 'doubted';
    // TLS passes on no reads behind an end, so another read cannot tell. But while our direction is open, only a reset can have closed both
    // directions.
    const isTls = this.#handle !== this.wire;
    if (isTls && this.#output === 'open' && this.hasLostPeer) return this.#loseWith(RESET_BY_PEER);
    if (isTls || !isNext || !this.hasLostPeer) return this.confirmEnd();
    // Reads once more: the kernel then reports an end or a reset. The result comes with the next poll, which is certainly before the second
    // event loop turn from now.
    this.#isReading = true;
    this.#handle.readStart();
    setImmediate(confirmNextTurn, this);
  }

  confirmEnd(): void {
    if (this.isOver || this.#input !== 'doubted') return;
    this.#stopReading();
    this.#input = 'ended';
    this.tellEnd();
    if (this.#output === 'ended' && !this.isOver) this.#finish();
  }

  // ---- writing ----

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.isOver || start === end) return true;
    if (this.#isWaiting) {
      this.#queue ??= new ByteQueue();
      this.#queue.push(bytes, start, end);
      return false;
    }
    return this.#writeNow(bytes, start, end, borrowed);
  }

  /** Copies memory that is not borrowed, because the kernel may leave a part pending. */
  #writeNow(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const view = borrowed ? bytes.subarray(start, end) : copyOf(bytes, start, end);
    const result = writeTo(this.#handle, this.#node, view, this);
    if (result < 0) this.#loseSoon(result);
    if (result !== 0) return true;
    this.#isWaiting = true;
    return false;
  }

  onWritten(status: number): void {
    calls = (calls + 1) | 0;
    if (this.isOver) return;
    if (status < 0) return this.#handle === this.wire ? this.#loseWith(status) : this.#loseSoon(status);
    try {
      this.#writeOn();
    } catch (error) {
      this.abandon(error, 'socket.drain');
    }
  }

  #writeOn(): void {
    if (this.#block !== null) giveBackBlock(this.#block);
    this.#block = null;
    for (let block = this.#queue?.shiftBlock(); block !== undefined; block = this.#queue?.shiftBlock()) {
      if (this.#writeNow(block.bytes, block.start, block.end, true)) giveBackBlock(block);
      else {
        this.#block = block;
        return;
      }
    }
    this.#isWaiting = false;
    this.#queue = null;
    if (this.#endAsked !== null) this.#sendEnd();
    else this.reader?.onDrain();
  }

  end(onFlushed?: () => void): void {
    if (this.isOver || this.#endAsked !== null) return;
    this.#endAsked = onFlushed ?? nobodyWaits;
    if (!this.#isWaiting) this.#sendEnd();
  }

  #sendEnd(): void {
    // Both directions of the connection are done: close() sends the same FIN to the peer, after all written bytes. TLS needs a shutdown
    // for its closing alert.
    if (this.#input === 'ended' && this.#handle === this.wire) {
      this.#finish();
      return this.#tellFlushed();
    }
    this.#output = 'ending';
    const request = new this.#node.ShutdownWrap();
    request.oncomplete = onShutDown;
    request.owner = this;
    const error = this.#handle.shutdown(request);
    if (error === 1) this.onShutDown(0);
    else if (error !== 0) this.#loseSoon(error);
  }

  onShutDown(status: number): void {
    if (this.#output !== 'ending') return;
    this.#output = 'ended';
    // The connection was reset while the shutdown of its sending direction was in progress.
    if (this.isOver) return this.#cutOff();
    if (status < 0) return this.#loseWith(status);
    this.#tellFlushed();
    if (this.#input === 'ended' && !this.isOver) this.#finish();
  }

  #tellFlushed(): void {
    try {
      this.#endAsked?.();
    } catch (error) {
      this.abandon(error, 'socket.flushed');
    }
  }

  // ---- the end ----

  reset(_reason: StreamReason): void {
    if (this.isOver) return;
    this.#stopReading();
    this.#stop();
    this.#cutOff();
  }

  #cutOff(): void {
    if (this.#isClosed) return;
    // libuv refuses a reset while a shutdown is pending, which takes one event loop turn regardless of the peer. With TLS the shutdown may
    // never complete, so a refused reset is followed by a close.
    if (this.#output === 'ending' && this.#handle === this.wire) return;
    // Unix sockets have no reset, so the handle is closed normally.
    if (this.#handle.reset === undefined || this.#handle.reset() !== 0) this.#close();
    else this.#closed();
  }

  /** Resets the connection. Has the same name as the method of net.Socket. */
  resetAndDestroy(): void {
    this.reset(CUT);
  }

  destroy(): void {
    if (!this.isOver) this.#finish();
    else this.#cutOff();
  }

  detach(): void {
    if (!this.isOver) this.#finish();
  }

  release(): Socket | null {
    if (this.isOver) return null;
    this.#stopReading();
    this.#stop();
    // From now on the net.Socket that continues the connection closes the native handle.
    this.#isClosed = true;
    this.#handle.duplex = null;
    const socket = this.#handle === this.wire ? socketOf(this.wire) : securedSocketOf(this.#handle as TlsHandle);
    // Ignores errors until the next owner listens, because an error without a listener would end the process.
    socket.on('error', () => {});
    const holder = this.#holder;
    this.#holder = null;
    if (holder !== null) {
      socket.once('close', () => holder.onClosed());
      holder.onBecame(socket);
    }
    return socket;
  }

  /**
   * Reports a failed write after the current call, because a writer does not expect callbacks within write(). Must run before the next
   * read: the kernel reports a reset only once, and an end afterwards.
   */
  #loseSoon(error: number): void {
    process.nextTick(lose, this, error);
  }

  loseWith(error: number): void {
    if (!this.isOver) this.#loseWith(error);
  }

  #loseWith(error: number): void {
    this.#finish();
    try {
      this.reader?.onReset({ code: 'peer-reset', text: getSystemErrorName(error) });
    } catch (thrown) {
      this.abandon(thrown, 'socket.reset');
    }
  }

  protected abandon(error: unknown, where: string): void {
    if (this.reader === null) this.destroy();
    else abandonOrDestroy(this.reader, error, where, this);
  }

  #finish(): void {
    this.#stop();
    this.#close();
  }

  #stop(): void {
    this.stopReads();
    this.#queue = null;
    // The block is not reused, because the kernel may still read from it.
    this.#block = null;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#handle.close();
    this.#closed();
  }

  #closed(): void {
    this.#isClosed = true;
    const holder = this.#holder;
    this.#holder = null;
    holder?.onClosed();
  }
}

const CUT: StreamReason = { code: 'cancelled', text: 'cut off' };

/** Counts callbacks from Node.js, so that a connection can tell whether the last callback was its own (see #onEnd). Wraps around. */
let calls = 0;

// Callbacks for Node.js, shared by all connections. `this` is the handle or the request.

function onRead(this: StreamHandle): Buffer | undefined {
  const duplex = this.duplex as HandleDuplex;
  const isNext = duplex.readCall === calls;
  calls = (calls + 1) | 0;
  duplex.readCall = calls;
  return duplex.onReadable(isNext);
}

function onShutDown(this: HandleRequest, status: number): void {
  calls = (calls + 1) | 0;
  (this.owner as HandleDuplex).onShutDown(status);
}

const lose = (duplex: HandleDuplex, error: number): void => duplex.loseWith(error);

const confirmNextTurn = (duplex: HandleDuplex): void => void setImmediate(confirm, duplex);

const confirm = (duplex: HandleDuplex): void => duplex.confirmEnd();
