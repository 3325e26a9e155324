// UDP socket for sealed packets. Seals into preallocated memory, limits the send queue, and ignores socket errors.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { MUX_LIMITS } from '../limits.ts';
import type { Guarded, ReportInternalError } from '../loop/guard.ts';
import { DatagramSender, receiveDatagrams } from '../native/dgram-handle.ts';
import {
  FLOW_ID_BYTES,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  type SealedKind,
  type SealingKey,
} from './sealed-datagram.ts';
import { askForReceiveBuffer, lookupAtOnce } from './udp-sockets.ts';

/** Maximum bytes queued in a UDP socket. Further datagrams are dropped, because Node.js has no back-pressure for UDP. */
const DATAGRAM_PATH_SEND_QUEUE_BYTES = 256 * 1024;
/** Maximum number of packets queued in a UDP socket, with their memory in use. The counterpart of the byte limit for small packets. */
const DATAGRAM_PATH_SEND_QUEUE_PACKETS = 256;
/** Receive buffer requested from the system. The system may grant less; docs/run.md names the setting. */
const DATAGRAM_PATH_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;

const BODY_MAX_BYTES = FLOW_ID_BYTES + MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;
const PACKET_MAX_BYTES = SEALED_OVERHEAD_BYTES + BODY_MAX_BYTES;

export interface PacketSocketOptions {
  readonly family: 4 | 6;
  /** Called with a packet received on the UDP socket. The callee owns the memory. */
  readonly onPacket: (packet: Buffer, from: RemoteInfo) => void;
  readonly report: ReportInternalError;
}

export interface PacketTarget {
  readonly address: string;
  readonly port: number;
}

export class PacketSocket implements Guarded {
  readonly family: 4 | 6;
  readonly #socket: Socket;
  readonly #report: ReportInternalError;
  /** Flow id and payload of a datagram in one buffer, so that a single cipher call encrypts both. */
  readonly #body = Buffer.allocUnsafe(BODY_MAX_BYTES);
  readonly #sender: DatagramSender;
  /** Memory of the next packet. Usually the kernel takes a packet at once. A queued packet keeps its memory, and the next gets another. */
  #packet: Buffer | null = null;
  #isOpen = true;

  constructor({ family, onPacket, report }: PacketSocketOptions) {
    this.family = family;
    this.#report = report;
    this.#socket = createSocket({ type: family === 4 ? 'udp4' : 'udp6', lookup: lookupAtOnce });
    // ICMP errors on the UDP socket are ignored: only missing answers decide whether a path has failed.
    this.#socket.on('error', () => {});
    receiveDatagrams(this.#socket, this, 'udp-path', onPacket);
    this.#sender = new DatagramSender(this.#socket);
  }

  /** Binds the socket; port 0 chooses a free port. Rejects with Node's error, for example EADDRINUSE. */
  async bind(host: string, port: number): Promise<PacketTarget> {
    await this.#settled('listening', () => this.#socket.bind({ address: host, port, exclusive: true }));
    askForReceiveBuffer(this.#socket, DATAGRAM_PATH_RECEIVE_BUFFER_BYTES);
    return this.#socket.address();
  }

  /** Connects the UDP socket: restricts sending and receiving to this address. */
  async connect({ address, port }: PacketTarget): Promise<void> {
    await this.#settled('connect', () => this.#socket.connect(port, address));
    askForReceiveBuffer(this.#socket, DATAGRAM_PATH_RECEIVE_BUFFER_BYTES);
  }

  get receiveBufferBytes(): number {
    return this.#isOpen ? this.#socket.getRecvBufferSize() : 0;
  }

  /** True if another packet can be queued. Otherwise the packet is dropped, because a late packet is worth less. */
  get hasRoom(): boolean {
    if (!this.#isOpen) return false;
    if (!this.#sender.isBehind) return true;
    const socket = this.#socket;
    const isLong = socket.getSendQueueSize() > DATAGRAM_PATH_SEND_QUEUE_BYTES;
    return !isLong && socket.getSendQueueCount() < DATAGRAM_PATH_SEND_QUEUE_PACKETS;
  }

  /** Returns false if the datagram was dropped. Without a target, sends to the connected address. */
  sendDatagram(key: SealingKey, flow: number, bytes: Buffer, start: number, end: number, to?: PacketTarget): boolean {
    const body = this.#body;
    body.writeUInt32BE(flow, 0);
    const length = FLOW_ID_BYTES + bytes.copy(body, FLOW_ID_BYTES, start, end);
    return this.send(key, SEALED_KIND.DATAGRAM, body.subarray(0, length), to);
  }

  /** Seals and sends a packet on a path. Returns false if the packet was dropped. */
  send(key: SealingKey, kind: SealedKind, body: Buffer, to?: PacketTarget): boolean {
    return this.hasRoom && this.sendAdmitted(key, kind, body, to);
  }

  /** Sends a packet whose datagrams were accepted while the queue had room. Returns false if the packet was dropped. */
  sendAdmitted(key: SealingKey, kind: SealedKind, body: Buffer, to?: PacketTarget): boolean {
    if (!this.#isOpen || body.length > BODY_MAX_BYTES) return false;
    this.#packet ??= Buffer.allocUnsafeSlow(PACKET_MAX_BYTES);
    const end = key.seal(kind, body, this.#packet, 0);
    if (end < 0) return false;
    const isFree = this.#sender.send(this.#packet.subarray(0, end), to?.port, to?.address);
    if (!isFree) this.#packet = null;
    return true;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#socket.close();
  }

  /** Reports the exception of a packet handler. Only the current packet is lost; the UDP socket stays open. */
  abandon(error: unknown, where: string): void {
    this.#report(error, where);
  }

  #settled(event: 'listening' | 'connect', begin: () => void): Promise<void> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      const settle = (error?: Error): void => {
        for (const name of ['error', 'close', event]) socket.off(name, settle);
        if (error === undefined) resolve();
        else reject(error);
      };
      // Waits for 'close' as well, because no other event follows once the socket is closed.
      for (const name of ['error', 'close', event]) socket.on(name, settle);
      begin();
    });
  }
}
