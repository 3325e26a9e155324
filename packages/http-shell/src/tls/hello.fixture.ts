// First messages of TLS visitors, for tests only: real messages of Node.js and OpenSSL, and invalid messages.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';

const firstBytes = async (dial: (port: number) => () => void): Promise<Buffer> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const accepted = once(server, 'connection');
  const hangUp = dial((server.address() as AddressInfo).port);
  const [socket] = (await accepted) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  hangUp();
  socket.destroy();
  server.close();
  return hello;
};

/** Returns the ClientHello that Node.js sends. */
export const helloOfNode = (options: ConnectionOptions): Promise<Buffer> =>
  firstBytes((port) => {
    const visitor = connect({ host: '127.0.0.1', port, ...options }).on('error', () => {});
    return () => visitor.destroy();
  });

export const helloOfOpenssl = (...flags: string[]): Promise<Buffer> =>
  firstBytes((port) => {
    const child = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...flags], { stdio: 'ignore' });
    return () => void child.kill();
  });

// ---- messages built by hand ----

const withLength = (bytes: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(bytes);
  head.writeUIntBE(body.length, 0, bytes);
  return Buffer.concat([head, body]);
};

const u16 = (value: number): Buffer => Buffer.of(value >> 8, value & 255);

export const extension = (type: number, ...parts: readonly Uint8Array[]): Buffer =>
  Buffer.concat([u16(type), withLength(2, ...parts)]);

/** Returns a single server_name extension with all of the names. A name of kind 0 is a host. */
export const serverNames = (...names: readonly (string | { kind: number; name: string })[]): Buffer =>
  extension(
    0,
    withLength(
      2,
      ...names.map((given) => {
        const { kind, name } = typeof given === 'string' ? { kind: 0, name: given } : given;
        return Buffer.concat([Buffer.of(kind), withLength(2, Buffer.from(name, 'latin1'))]);
      }),
    ),
  );

export const protocols = (...names: readonly string[]): Buffer =>
  extension(16, withLength(2, ...names.map((name) => withLength(1, Buffer.from(name, 'latin1')))));

/** Returns a key share extension with a post-quantum group (X25519MLKEM768), as large as a client sends it. */
export const postQuantumShare = (): Buffer =>
  extension(51, withLength(2, u16(0x11ec), withLength(2, Buffer.alloc(1216, 7))));

/** Returns a ClientHello message without a TLS record around it. */
export const helloMessage = (...extensions: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat([
    u16(0x0303),
    Buffer.alloc(32, 9),
    withLength(1, Buffer.alloc(32, 8)),
    withLength(2, u16(0x1301), u16(0xc02b)),
    withLength(1, Buffer.of(0)),
    withLength(2, ...extensions),
  ]);
  return Buffer.concat([Buffer.of(1), withLength(3, body)]);
};

/** Splits a message into TLS records of at most the given size. */
export const inRecords = (message: Buffer, size = 16_384): Buffer => {
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    records.push(Buffer.concat([Buffer.of(22, 3, 1), withLength(2, message.subarray(at, at + size))]));
  }
  return Buffer.concat(records);
};

export const hello = (...extensions: readonly Uint8Array[]): Buffer => inRecords(helloMessage(...extensions));
