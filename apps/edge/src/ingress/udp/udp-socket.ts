// A bound UDP socket with a large receive buffer. Sent datagrams are copied, and the send queue is limited.
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { askForReceiveBuffer, DatagramSender, lookupAtOnce } from '@tunnel/mux';

/**
 * Requested size of the kernel's receive buffer per port, for datagrams that arrive while the edge is busy. The kernel grants at most
 * `net.core.rmem_max`.
 */
export const UDP_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/**
 * Maximum bytes of replies queued behind the kernel's buffer of a port. More are dropped (reason `path`), because a late datagram is worse
 * than a lost datagram.
 */
export const UDP_SEND_QUEUE_BYTES = 256 * 1024;
/** Size of the memory block from which replies are sent, shared by all ports. Holds two datagrams of maximum size. */
const UDP_SEND_BLOCK_BYTES = 128 * 1024;

/** Requested and actual size of a bound UDP socket's receive buffer. */
export interface ReceiveBuffer {
  readonly askedBytes: number;
  /** Size reported by the system. Linux doubles the requested size, up to `net.core.rmem_max`. */
  readonly givenBytes: number;
}

export class UdpSocket {
  readonly socket: Socket;
  readonly receiveBuffer: ReceiveBuffer;
  readonly #blocks: SendBlocks;
  readonly #sender: DatagramSender;
  #isOpen = true;

  private constructor(socket: Socket, blocks: SendBlocks) {
    this.socket = socket;
    this.#blocks = blocks;
    this.#sender = new DatagramSender(socket);
    this.receiveBuffer = enlargeReceiveBuffer(socket);
  }

  /** Binds a socket. Rejects with the system's error. As with tcp, the host `::` accepts IPv4 too. */
  static async bind(host: string, port: number, blocks: SendBlocks): Promise<UdpSocket> {
    const address = isIP(host) === 0 ? (await lookup(host)).address : host;
    const socket = createSocket({ type: isIP(address) === 6 ? 'udp6' : 'udp4', lookup: lookupAtOnce });
    const listening = once(socket, 'listening');
    socket.bind({ port, address, exclusive: true });
    try {
      await listening;
    } catch (error) {
      socket.close();
      throw error;
    }
    return new UdpSocket(socket, blocks);
  }

  /**
   * Sends a datagram. The memory belongs to the caller again on return. Returns false if the queue is full and the datagram was not sent.
   */
  send(bytes: Buffer, start: number, end: number, port: number, address: string): boolean {
    if (!this.#isOpen) return false;
    if (this.#sender.isBehind && this.socket.getSendQueueSize() > UDP_SEND_QUEUE_BYTES) return false;
    const block = this.#blocks.roomFor(end - start);
    const at = this.#blocks.used;
    const length = bytes.copy(block, at, start, end);
    // Usually the kernel has copied the sent datagram already, and its memory can be reused. Otherwise libuv reads it later.
    const isFree = this.#sender.send(block.subarray(at, at + length), port, address);
    if (!isFree) this.#blocks.used += length;
    return true;
  }

  /** Closes the UDP socket. Resolves when its port is free. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // `once` is not used, because it would reject if an 'error' event came first.
    await new Promise<void>((resolve) => {
      this.socket.close(() => resolve());
    });
  }
}

/**
 * Memory of outgoing datagrams, shared by all sockets. Queued bytes are never overwritten: a new block replaces the old block, and libuv
 * keeps the old block while reading from it.
 */
export class SendBlocks {
  used = 0;
  #block: Buffer | null = null;

  /** Returns a memory block for outgoing datagrams, with enough room behind `used`. */
  roomFor(bytes: number): Buffer {
    if (this.#block !== null && this.used + bytes <= this.#block.length) return this.#block;
    this.used = 0;
    this.#block = Buffer.allocUnsafeSlow(UDP_SEND_BLOCK_BYTES);
    return this.#block;
  }
}

const enlargeReceiveBuffer = (socket: Socket): ReceiveBuffer => {
  const askedBytes = UDP_RECEIVE_BUFFER_BYTES;
  askForReceiveBuffer(socket, askedBytes);
  return { askedBytes, givenBytes: socket.getRecvBufferSize() };
};
