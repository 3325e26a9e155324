// UDP services that tests reach through a tunnel. Every service has a separate port on a loopback address.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';

export interface UdpService {
  readonly port: number;
  /** Received datagrams in order, with the sender's port. */
  readonly received: readonly { readonly bytes: Buffer; readonly from: number }[];
  /** Sends a datagram from the service to a port. */
  send(bytes: Buffer | string, port: number): void;
  close(): Promise<void>;
}

export interface UdpServiceOptions {
  readonly host?: string;
  /** Port of the service. Default: 0, any free port. */
  readonly port?: number;
}

/** Starts a UDP service. `answer` returns the reply to a datagram, or null for no reply. */
export const startUdpService = async (
  answer: (bytes: Buffer) => Buffer | null,
  { host = '127.0.0.1', port = 0 }: UdpServiceOptions = {},
): Promise<UdpService> => {
  const socket: Socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const received: { bytes: Buffer; from: number }[] = [];
  // ICMP reports a visitor that has gone as a socket error, which is not a fault of the service.
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
