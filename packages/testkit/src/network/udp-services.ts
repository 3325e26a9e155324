// Services over UDP that tests reach through a tunnel: each answers from its own port on a loopback address.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';

export interface UdpService {
  readonly port: number;
  /** What came, in order, with the port that it came from. */
  readonly received: readonly { readonly bytes: Buffer; readonly from: number }[];
  /** As the service: to whoever has this port. */
  send(bytes: Buffer | string, port: number): void;
  close(): Promise<void>;
}

export interface UdpServiceOptions {
  readonly host?: string;
  /** 0, the default: any free one. */
  readonly port?: number;
}

/** `answer` gives what goes back for a datagram; null: nothing does. */
export const startUdpService = async (
  answer: (bytes: Buffer) => Buffer | null,
  { host = '127.0.0.1', port = 0 }: UdpServiceOptions = {},
): Promise<UdpService> => {
  const socket: Socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const received: { bytes: Buffer; from: number }[] = [];
  // A visitor that is gone is told by ICMP, and is no fault of the service.
  socket.on('error', () => {});
  socket.on('message', (bytes: Buffer, from: RemoteInfo) => {
    received.push({ bytes, from: from.port });
    const reply = answer(bytes);
    if (reply !== null) socket.send(reply, from.port, from.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, host, () => {
      socket.off('error', reject);
      resolve();
    });
  });
  return {
    port: socket.address().port,
    received,
    send: (bytes, to) => socket.send(bytes, to, host),
    close: () => new Promise((resolve) => socket.close(resolve)),
  };
};

export const startUdpEcho = (options: UdpServiceOptions = {}): Promise<UdpService> =>
  startUdpService((bytes) => bytes, options);
