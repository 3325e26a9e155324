// A UDP socket for sealed packets: sealed into memory of its own, bounded in what waits to be sent, never an error that nobody hears.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { MUX_LIMITS } from '../limits.ts';
import { type Guarded, guard, type ReportInternalError } from '../loop/guard.ts';
import {
  FLOW_ID_BYTES,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  type SealedKind,
  type SealingKey,
} from './sealed-datagram.ts';
import { askForReceiveBuffer, lookupAtOnce } from './udp-sockets.ts';

/** bytes that wait in a UDP socket; over it datagrams are dropped: node has no back-pressure there */
const DATAGRAM_PATH_SEND_QUEUE_BYTES = 256 * 1024;
/** packets whose memory a UDP socket may still need; the same bound for small ones */
export const DATAGRAM_PATH_SEND_QUEUE_PACKETS = 256;
/** what a UDP socket asks the system for; it may give less, docs/run.md names the setting */
const DATAGRAM_PATH_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;

const BODY_MAX_BYTES = FLOW_ID_BYTES + MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;
const SLOT_BYTES = SEALED_OVERHEAD_BYTES + BODY_MAX_BYTES;
const SLOTS = DATAGRAM_PATH_SEND_QUEUE_PACKETS;

export interface PacketSocketOptions {
  readonly family: 4 | 6;
  /** The memory is the callee's to keep. */
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
  /** Flow id and payload side by side, for one call of the cipher. */
  readonly #body = Buffer.allocUnsafe(BODY_MAX_BYTES);
  /** Packets in turn. One that the system did not take at once is in the socket's queue, which is shorter than this. */
  #slots: Buffer | null = null;
  #nextSlot = 0;
  #isOpen = true;

  constructor({ family, onPacket, report }: PacketSocketOptions) {
    this.family = family;
    this.#report = report;
    this.#socket = createSocket({ type: family === 4 ? 'udp4' : 'udp6', lookup: lookupAtOnce });
    // What the network says of a packet (ICMP) changes nothing here: silence is what counts.
    this.#socket.on('error', () => {});
    guard.listen(this.#socket, 'message', this, 'udp-path', onPacket);
  }

  /** Port 0: any free one. Rejects as node does, EADDRINUSE included. */
  async bind(host: string, port: number): Promise<PacketTarget> {
    await this.#settled('listening', () => this.#socket.bind({ address: host, port, exclusive: true }));
    askForReceiveBuffer(this.#socket, DATAGRAM_PATH_RECEIVE_BUFFER_BYTES);
    return this.#socket.address();
  }

  /** From now on packets come from and go to this address alone. */
  async connect({ address, port }: PacketTarget): Promise<void> {
    await this.#settled('connect', () => this.#socket.connect(port, address));
    askForReceiveBuffer(this.#socket, DATAGRAM_PATH_RECEIVE_BUFFER_BYTES);
  }

  get receiveBufferBytes(): number {
    return this.#isOpen ? this.#socket.getRecvBufferSize() : 0;
  }

  /** Whether one more packet may wait; if not, it is dropped: later it would be worth less. */
  get hasRoom(): boolean {
    if (!this.#isOpen) return false;
    const socket = this.#socket;
    return socket.getSendQueueSize() <= DATAGRAM_PATH_SEND_QUEUE_BYTES && socket.getSendQueueCount() < SLOTS - 1;
  }

  /** false: dropped. Without a target: to where it is connected. */
  sendDatagram(key: SealingKey, flow: number, bytes: Buffer, start: number, end: number, to?: PacketTarget): boolean {
    const body = this.#body;
    body.writeUInt32BE(flow, 0);
    const length = FLOW_ID_BYTES + bytes.copy(body, FLOW_ID_BYTES, start, end);
    return this.send(key, SEALED_KIND.DATAGRAM, body.subarray(0, length), to);
  }

  /** false: dropped. */
  send(key: SealingKey, kind: SealedKind, body: Buffer, to?: PacketTarget): boolean {
    if (!this.hasRoom || body.length > BODY_MAX_BYTES) return false;
    this.#slots ??= Buffer.allocUnsafeSlow(SLOTS * SLOT_BYTES);
    const start = this.#nextSlot * SLOT_BYTES;
    const end = key.seal(kind, body, this.#slots, start);
    if (end < 0) return false;
    this.#nextSlot = (this.#nextSlot + 1) % SLOTS;
    if (to === undefined) this.#socket.send(this.#slots, start, end - start);
    else this.#socket.send(this.#slots, start, end - start, to.port, to.address);
    return true;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#socket.close();
  }

  /** It costs that packet. */
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
      // Also with its close, after which nothing else comes.
      for (const name of ['error', 'close', event]) socket.on(name, settle);
      begin();
    });
  }
}
