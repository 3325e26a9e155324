// Which visitors need no more than HTTP/1.1, by their first bytes.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { expect, it } from 'vitest';
import { speaksHttp1Alone } from './handle-handshake.ts';

/** What Node itself would send. */
const helloOf = async (options: ConnectionOptions): Promise<Buffer> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const accepted = once(server, 'connection');
  const visitor = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options });
  visitor.on('error', () => {});
  const [socket] = (await accepted) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  visitor.destroy();
  socket.destroy();
  server.close();
  return hello;
};

it('knows those that offer nothing else', async () => {
  expect(speaksHttp1Alone(await helloOf({}))).toBe(true);
  expect(speaksHttp1Alone(await helloOf({ ALPNProtocols: ['http/1.1'] }))).toBe(true);
  expect(speaksHttp1Alone(await helloOf({ maxVersion: 'TLSv1.2', servername: 'web.localhost' }))).toBe(true);
});

it.each([[['h2']], [['http/1.1', 'h2']], [['tunnel/1', 'http/1.1']]])('leaves %s to node:tls', async (names) => {
  expect(speaksHttp1Alone(await helloOf({ ALPNProtocols: names }))).toBe(false);
});

it('leaves to node:tls what is cut, longer than its record or no handshake', async () => {
  const hello = await helloOf({});
  for (let length = 0; length < hello.length; length++) {
    expect(speaksHttp1Alone(hello.subarray(0, length))).toBe(false);
  }
  expect(speaksHttp1Alone(Buffer.concat([hello, Buffer.of(0)]))).toBe(false);
  const goesOn = Buffer.from(hello);
  goesOn.writeUIntBE(hello.length, 6, 3);
  expect(speaksHttp1Alone(goesOn)).toBe(false);
  expect(speaksHttp1Alone(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toBe(false);
});
