// Test version of the edge's two UDP ports for peers. Answers a sealed PING with a PONG that contains the sender's address.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import {
  decodePing,
  encodePong,
  OpeningKey,
  readSealedKind,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  SealingKey,
} from '@tunnel/mux';

export interface ObservingPorts {
  readonly ports: readonly [number, number];
  /** Keys of the client, the same for every socket of the client. */
  clientKeys(): { readonly sealing: SealingKey; readonly opening: OpeningKey };
  close(): void;
}

const ID = Buffer.from('0123456789abcdef', 'hex');
const TO_EDGE = Buffer.alloc(32, 1);
const TO_CLIENT = Buffer.alloc(32, 2);

/** Starts the ports for one client. A second client would need separate keys, because the packet counters belong to the keys. */
export const startObservingPorts = async (): Promise<ObservingPorts> => {
  const opening = new OpeningKey(ID, TO_EDGE);
  const sealing = new SealingKey(ID, TO_CLIENT);
  const listen = async (): Promise<Socket> => {
    const socket = createSocket('udp4');
    socket.on('error', () => {});
    socket.on('message', (packet, from) => {
      const body = readSealedKind(packet) === SEALED_KIND.PING ? opening.open(packet) : null;
      const token = body === null || typeof body === 'string' ? null : decodePing(body);
      const pong = token === null ? null : encodePong(token, from.address, from.port);
      if (pong === null) return;
      const answer = Buffer.alloc(SEALED_OVERHEAD_BYTES + pong.length);
      sealing.seal(SEALED_KIND.PONG, pong, answer, 0);
      socket.send(answer, from.port, from.address);
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return socket;
  };
  const [one, other] = await Promise.all([listen(), listen()]);
  const keys = { sealing: new SealingKey(ID, TO_EDGE), opening: new OpeningKey(ID, TO_CLIENT) };
  return {
    ports: [one.address().port, other.address().port],
    clientKeys: () => keys,
    close: () => {
      one.close();
      other.close();
    },
  };
};
