// Raw HTTP/2 frames, for visitors and services that break the rules of HTTP/2.
import * as http2 from 'node:http2';
import * as net from 'node:net';

/** Types of HTTP/2 frames. */
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
/** Flags of HTTP/2 frames. */
export const END_STREAM = 1;
export const END_HEADERS = 4;

export const frame = (
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array | readonly number[] = [],
): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
};

/** Tells whether nghttp2 refuses a stream with a dependency on itself. Newer versions ignore priorities and accept the stream. */
export const refusesSelfDependency = async (): Promise<boolean> => {
  const server = http2.createServer().on('sessionError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1');
  const ping = frame(PING, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]);
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(PRIORITY, 0, 1, [0, 0, 0, 1, 1]), ping]));
  const types: number[] = [];
  let rest = Buffer.alloc(0);
  // The server answers the ping, or closes the connection with GOAWAY.
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      types.push(rest[3] as number);
      rest = rest.subarray(9 + rest.readUIntBE(0, 3));
    }
    if (types.includes(PING) || types.includes(GOAWAY)) break;
  }
  socket.destroy();
  server.close();
  return types.includes(GOAWAY);
};
