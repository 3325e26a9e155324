// The first message of a TLS handshake, recorded once, so that it can be sent again and again at no cost for the sender.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** A ClientHello of TLS 1.3 that offers a key share of this one group. */
export const recordHello = async (group: string): Promise<Buffer> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sender = connectTls({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    ecdhCurve: group,
    minVersion: 'TLSv1.3',
  });
  sender.on('error', () => {});
  try {
    const [receiver] = (await once(server, 'connection')) as [Socket];
    const [hello] = (await once(receiver, 'data')) as [Buffer];
    receiver.destroy();
    return hello;
  } finally {
    sender.destroy();
    server.close();
  }
};

/** What a port answers to these bytes: the type of its first TLS record, or null where it ends without a word. 21 is an alert, 22 a handshake. */
export const answerToHello = async (port: number, hello: Buffer): Promise<number | null> => {
  const socket = connect(port, '127.0.0.1');
  try {
    return await new Promise((resolve) => {
      socket.on('error', () => {});
      socket.once('close', () => resolve(null));
      socket.once('data', (bytes: Buffer) => resolve(bytes[0] ?? null));
      socket.write(hello);
    });
  } finally {
    socket.destroy();
  }
};
