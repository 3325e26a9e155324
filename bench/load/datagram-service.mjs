// The origin's UDP service on the same port number as its TCP services. The first byte of a datagram selects the action.
import { createSocket } from 'node:dgram';

export const DATAGRAM = { echo: 1, sink: 2, count: 3 };
export const DATAGRAM_BYTES = 64;
/** Offsets in `count` datagrams and their answers: the number of the run, and the number of datagrams received in it. */
export const RUN_AT = 1;
export const COUNT_AT = 5;

/** Serves datagrams: `sink` receives datagrams of a run, and `count` asks for the number received so far. */
export function serveDatagrams(port) {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
  let run = 0;
  let count = 0;
  socket.on('error', () => {});
  socket.on('message', (bytes, from) => {
    if (bytes[0] === DATAGRAM.echo) return socket.send(bytes, from.port, from.address);
    const asked = bytes.readUInt32BE(RUN_AT);
    if (asked !== run) [run, count] = [asked, 0];
    if (bytes[0] === DATAGRAM.sink) count += 1;
    if (bytes[0] !== DATAGRAM.count) return undefined;
    bytes.writeUInt32BE(count, COUNT_AT);
    return socket.send(bytes, from.port, from.address);
  });
  socket.bind(port, '127.0.0.1');
}
