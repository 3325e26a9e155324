// One bound UDP socket: opened where the configuration says, with a large receive buffer; what it sends is copied, and bounded.
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { askForReceiveBuffer, lookupAtOnce } from '@tunnel/mux';

/** what the kernel may keep of a port while we are busy, asked for; it gives no more than `net.core.rmem_max` */
export const UDP_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** replies that wait behind the kernel’s buffer of one port; more are dropped (`path`), as late is worse than lost */
export const UDP_SEND_QUEUE_BYTES = 256 * 1024;
/** memory from which replies are sent, shared by all ports; it holds two of the largest */
const UDP_SEND_BLOCK_BYTES = 128 * 1024;

/** Taken by a socket that has been bound. */
export interface ReceiveBuffer {
  readonly askedBytes: number;
  /** As the system says it: Linux counts twice what it was asked for, up to `net.core.rmem_max`. */
  readonly givenBytes: number;
}

export class UdpSocket {
  readonly socket: Socket;
  readonly receiveBuffer: ReceiveBuffer;
  readonly #blocks: SendBlocks;
  /** Something waited behind the kernel's buffer when it was looked last. */
  #isBehind = false;
  #isOpen = true;

  private constructor(socket: Socket, blocks: SendBlocks) {
    this.socket = socket;
    this.#blocks = blocks;
    this.receiveBuffer = enlargeReceiveBuffer(socket);
  }

  /** Rejects with the system's error. `host` as for tcp: `::` takes IPv4, too. */
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

  /** The memory is the caller's again when this returns. false: too much waits already, and this was not sent. */
  send(bytes: Buffer, start: number, end: number, port: number, address: string): boolean {
    const { socket } = this;
    if (this.#isBehind && socket.getSendQueueSize() > UDP_SEND_QUEUE_BYTES) return false;
    const block = this.#blocks.roomFor(end - start);
    const at = this.#blocks.used;
    bytes.copy(block, at, start, end);
    socket.send(block, at, end - start, port, address);
    // As a rule the kernel has it by now, and the room is free again. Else libuv reads it later.
    this.#isBehind = socket.getSendQueueCount() > 0;
    if (this.#isBehind) this.#blocks.used += end - start;
    return true;
  }

  /** The port is free when this settles. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // Not by its event alone: `once` would reject with an error that comes meanwhile.
    await new Promise<void>((resolve) => {
      this.socket.close(() => resolve());
    });
  }
}

/**
 * Memory of datagrams on their way out, shared by all sockets. What was queued is never written to again: the next block takes
 * its place, and libuv keeps the old one as long as it reads from it.
 */
export class SendBlocks {
  used = 0;
  #block: Buffer | null = null;

  /** A block with so much room behind `used`. */
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
