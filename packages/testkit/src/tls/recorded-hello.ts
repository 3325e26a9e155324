// Records the first message of a TLS handshake. Tests can send the recording repeatedly at no cost for the sender.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Records a ClientHello of TLS 1.3 with a key share for a single group. */
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

/**
 * Sends a ClientHello to a port. Returns the type of the first TLS record in the response (21 is an alert, 22 a handshake), or null if
 * the connection ends without a response.
 */
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
