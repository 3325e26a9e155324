// Writes to a carrier's socket that bypass Node's stream layer. For a small frame, Node's work per write (a request, two closures, a tick)
// costs as much as the system call. As with direct reads, the socket still reports ends, errors and the close, and ends as usual.
import type { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { type NodeHandles, nodeHandles, type StreamHandle, type WriteOwner, writeTo } from './node-handles.ts';

type SocketInside = Socket & { readonly _handle: StreamHandle | null };

export class DirectWrites implements WriteOwner {
  readonly #socket: SocketInside;
  readonly #node: NodeHandles;
  readonly #onWritten: () => void;
  #pendingBytes = 0;

  constructor(socket: Socket, node: NodeHandles, onWritten: () => void) {
    this.#socket = socket as SocketInside;
    this.#node = node;
    this.#onWritten = onWritten;
  }

  /** Bytes of the write that the kernel, or TLS, has not accepted yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /**
   * Returns true if all bytes were accepted and the memory is free. Otherwise the bytes are in use until `onWritten` is called, or until the
   * socket closes. Call only while no other write is pending, neither of this object nor of the socket.
   */
  write(bytes: Buffer): boolean {
    const handle = this.#socket._handle;
    this.#pendingBytes = bytes.length;
    // The socket is closing, which the 'close' event reports.
    if (handle === null) return false;
    const result = writeTo(handle, this.#node, bytes, this);
    if (result > 0) this.#pendingBytes = 0;
    else if (result < 0) this.#fail(result);
    return result > 0;
  }

  onWritten(status: number): void {
    if (status < 0) return this.#fail(status);
    this.#pendingBytes = 0;
    this.#onWritten();
  }

  #fail(error: number): void {
    const code = getSystemErrorName(error);
    if (!this.#socket.destroyed) this.#socket.destroy(Object.assign(new Error(`write ${code}`), { code }));
  }
}

/** Returns null if Node's internals are not available. The socket is then written as usual. */
export const directWrites = (socket: Socket, onWritten: () => void): DirectWrites | null => {
  const node = nodeHandles();
  const handle = (socket as SocketInside)._handle;
  if (node === null || typeof handle?.writeBuffer !== 'function') return null;
  return new DirectWrites(socket, node, onWritten);
};
