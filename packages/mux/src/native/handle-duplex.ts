// A connection on libuv's own handle as a ByteDuplex: what SocketDuplex promises, without net.Socket, its events and its ticks. One object, no
// closure and no timer a connection; an idle one holds no buffer.
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
  type WriteRequest,
} from './node-handles.ts';
import { PacedReads } from './paced-reads.ts';
import { RESET_BY_PEER, securedSocketOf, type TlsHandle } from './tls-handle.ts';

const nobodyWaits = (): void => {};

export class HandleDuplex extends PacedReads implements SocketEnd {
  /** What is read and written: the connection itself, or TLS on it. */
  #handle: StreamHandle;
  /** The handle of the connection itself, also where TLS lies on it. */
  readonly wire: StreamHandle;
  /** The number of the call that read from this connection last; -1 before the first. */
  readCall = -1;
  #isClosed = false;
  #peer: PeerName | null = null;
  readonly #node: NodeHandles;
  #holder: SocketHolder | null = null;
  #isReading = false;
  #hasMemory = false;
  #input: 'open' | 'doubted' | 'ended' = 'open';
  #output: 'open' | 'ending' | 'ended' = 'open';
  /** Set while the kernel has not taken all: later writes queue here, in order. */
  #isWaiting = false;
  #queue: ByteQueue | null = null;
  /** Of the queue, while the kernel has not taken all of it. */
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

  /** undefined: the peer has gone already. */
  get remoteAddress(): string | undefined {
    return this.#peerName().address;
  }

  get remotePort(): number | undefined {
    return this.#peerName().port;
  }

  /** The address that the peer reached; undefined: the peer has gone already. */
  get localAddress(): string | undefined {
    return this.#ownName().address;
  }

  get localPort(): number | undefined {
    return this.#ownName().port;
  }

  /** Asked of the kernel each time: few connections are asked for it, and each at most once. */
  #ownName(): PeerName {
    const name: PeerName = {};
    if (!this.#isClosed) this.wire.getsockname?.(name);
    return name;
  }

  /** Asked of the kernel once. */
  #peerName(): PeerName {
    if (this.#peer === null) {
      this.#peer = {};
      if (!this.#isClosed) this.wire.getpeername?.(this.#peer);
    }
    return this.#peer;
  }

  /** One, from its accept on. */
  heldBy(holder: SocketHolder): void {
    this.#holder = holder;
  }

  /** TLS begins: its handle lies on ours from here on, and is read in its stead. */
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
    // One more listener inside Node, for as long as the connection lives: for one that is about to end.
    this.#handle.useUserBuffer(view);
  }

  /** From the handle: bytes, an end or an error. `isNext`: the last call was for us, too. Returns where the next bytes go; undefined: as these did. */
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
   * libuv takes a hang-up right behind the last bytes for an end, also when it was a reset: a transfer that was cut off would look complete. It does
   * so in the very event that brought the bytes; an end that comes by itself was read from the kernel, and is one.
   */
  #onEnd(isNext: boolean): void {
    this.#isReading = false;
    if (this.#input !== 'open') return;
    this.#input = 'doubted';
    // TLS passes nothing on behind an end, so that nobody can ask. But while we have not ended, both directions are over by a reset alone.
    const isTls = this.#handle !== this.wire;
    if (isTls && this.#output === 'open' && this.hasLostPeer) return this.#loseWith(RESET_BY_PEER);
    if (isTls || !isNext || !this.hasLostPeer) return this.confirmEnd();
    // The kernel, asked once more, says which it was. The answer comes with the next poll: the first turn may be before it, the second is not.
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

  /** Memory that is not borrowed is copied beforehand, since the kernel might keep a part waiting. */
  #writeNow(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const view = borrowed ? bytes.subarray(start, end) : copyOf(bytes, start, end);
    spareRequest ??= new this.#node.WriteWrap();
    const request = spareRequest;
    request.oncomplete = onWritten;
    // TLS may tell of a failure within the call.
    if (this.#handle !== this.wire) request.owner = this;
    const error = this.#handle.writeBuffer(request, view);
    if (error !== 0) {
      this.#loseSoon(error);
      return true;
    }
    if (this.#node.streamBaseState[this.#node.kLastWriteWasAsync] === 0) {
      request.owner = null;
      return true;
    }
    request.owner = this;
    request.bytes = view;
    spareRequest = null;
    this.#isWaiting = true;
    return false;
  }

  onWritten(status: number): void {
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
    // Both directions are done: a close says so to the peer in the same words, and all that was written goes out before it.
    // TLS has an alert for it.
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
    // It was reset meanwhile.
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
    // While its end is on its way libuv refuses a reset; that takes one turn of the loop, whatever the peer does. Below TLS it may take for ever, so
    // that the refusal is followed by a close.
    if (this.#output === 'ending' && this.#handle === this.wire) return;
    // A Unix socket has no reset.
    if (this.#handle.reset === undefined || this.#handle.reset() !== 0) this.#close();
    else this.#closed();
  }

  /** As net.Socket has it. */
  resetAndDestroy(): void {
    this.reset(CUT);
  }

  destroy(): void {
    if (!this.isOver) this.#finish();
    else this.#cutOff();
  }

  letGo(): void {
    if (!this.isOver) this.#finish();
  }

  release(): Socket | null {
    if (this.isOver) return null;
    this.#stopReading();
    this.#stop();
    // From here on it is closed by its next owner.
    this.#isClosed = true;
    this.#handle.duplex = null;
    const socket = this.#handle === this.wire ? socketOf(this.wire) : securedSocketOf(this.#handle as TlsHandle);
    // Until its next owner listens; an error without a listener would end the process.
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
   * Not within the call that met it: whoever writes does not expect to be told of an end by it. But before the kernel is asked again: it tells of a
   * reset once, and of an end from there on.
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
    // Not given back: the kernel may still read it.
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

/** How often Node has called us, so that a connection knows whether the last call was its own: see #onEnd. Wraps around. */
let calls = 0;

/** A request whose write was done at once, which Node does not touch: the next write takes it again. It has neither an owner nor bytes. */
let spareRequest: WriteRequest | null = null;

// What Node calls, the same functions for all: `this` is the handle or the request.

function onRead(this: StreamHandle): Buffer | undefined {
  const duplex = this.duplex as HandleDuplex;
  const isNext = duplex.readCall === calls;
  calls = (calls + 1) | 0;
  duplex.readCall = calls;
  return duplex.onReadable(isNext);
}

function onWritten(this: WriteRequest, status: number): void {
  calls = (calls + 1) | 0;
  this.bytes = null;
  (this.owner as HandleDuplex).onWritten(status);
}

function onShutDown(this: HandleRequest, status: number): void {
  calls = (calls + 1) | 0;
  (this.owner as HandleDuplex).onShutDown(status);
}

const lose = (duplex: HandleDuplex, error: number): void => duplex.loseWith(error);

const confirmNextTurn = (duplex: HandleDuplex): void => void setImmediate(confirm, duplex);

const confirm = (duplex: HandleDuplex): void => duplex.confirmEnd();
