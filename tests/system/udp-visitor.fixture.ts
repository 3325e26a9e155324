// A visitor of UDP tunnels with a single address and port, and the datagrams that it receives.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Stack } from './stack.fixture.ts';

const HOST = '127.0.0.1';
const ANSWER_TIMEOUT_MS = 15_000;

export class UdpVisitor {
  readonly heard: Buffer[] = [];
  readonly #socket: Socket;
  readonly #to: number;

  private constructor(socket: Socket, to: number) {
    this.#socket = socket;
    this.#to = to;
    socket.on('error', () => {});
    socket.on('message', (bytes: Buffer) => void this.heard.push(bytes));
  }

  /** Creates a visitor of the tunnel on a port. */
  static async of(to: number): Promise<UdpVisitor> {
    const socket = createSocket('udp4').bind(0, HOST);
    await once(socket, 'listening');
    return new UdpVisitor(socket, to);
  }

  get name(): string {
    return `${HOST}:${this.#socket.address().port}`;
  }

  say(bytes: Buffer | string): void {
    this.#socket.send(bytes, this.#to, HOST);
  }

  /** Sends a datagram once, and returns the next datagram received. */
  async ask(bytes: Buffer | string): Promise<Buffer> {
    const before = this.heard.length;
    this.say(bytes);
    return this.#next(before);
  }

  /** Sends a datagram repeatedly until a response arrives, because a dropped datagram causes no error. */
  async askUntilAnswered(bytes: Buffer | string): Promise<Buffer> {
    const before = this.heard.length;
    return eventually(
      () => {
        this.say(bytes);
        expect(this.heard.length).toBeGreaterThan(before);
        return this.heard[before] as Buffer;
      },
      { timeoutMs: ANSWER_TIMEOUT_MS },
    );
  }

  #next(before: number): Promise<Buffer> {
    return eventually(
      () => {
        expect(this.heard.length).toBeGreaterThan(before);
        return this.heard[before] as Buffer;
      },
      { timeoutMs: ANSWER_TIMEOUT_MS },
    );
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}

/** Returns true if no program uses the UDP port. */
export const isUdpPortFree = async (port: number): Promise<boolean> => {
  const socket = createSocket('udp4').bind(port, HOST);
  const isFree = await once(socket, 'listening').then(
    () => true,
    () => false,
  );
  socket.close();
  return isFree;
};

export interface FlowList {
  readonly flows: readonly {
    readonly visitor: string;
    readonly confirmed: boolean;
    readonly datagrams_in: number;
    readonly datagrams_out: number;
    readonly bytes_in: number;
    readonly bytes_out: number;
    readonly dropped: number;
  }[];
  readonly total: number;
  readonly dropped: Readonly<Record<string, number>>;
  readonly path: string;
  readonly reason: string;
}

export const flowsOf = async (stack: Stack, tunnelId: string): Promise<FlowList> =>
  (await (await stack.api(`/api/tunnels/${tunnelId}/flows`)).json()) as FlowList;
