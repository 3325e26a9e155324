import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { ControlServer } from './control-server.ts';

const file = (name: string): Buffer =>
  readFileSync(new URL(`../../../../packages/testkit/fixtures/tls/${name}`, import.meta.url));

describe.each([
  ['plain', null],
  ['TLS', { cert: file('cert.pem'), key: file('key.pem') }],
])('connections that ask for nothing (%s)', (kind, tls) => {
  it('have so much room; the oldest gives way to the next, those that have asked do not', async () => {
    const sockets: Socket[] = [];
    const carriers: Socket[] = [];
    const server = new ControlServer({
      listenOn: { host: '127.0.0.1', port: 0, key: 'control_port' },
      refusal: () => null,
      onControl: () => {},
      onCarrier: (_request, socket) => carriers.push(socket),
      handshakesMax: 2,
    });
    await server.start(tls);
    const { port } = server.address;
    const idle = async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      sockets.push(socket);
      await once(socket, 'connect');
      return socket.resume();
    };
    const open =
      kind === 'TLS' ? connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false }) : connect(port, '127.0.0.1');
    sockets.push(open.on('error', () => {}));
    open.write('GET /_carrier HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tunnel-carrier/1\r\n\r\n');
    await eventually(() => expect(carriers).toHaveLength(1));
    expect(server.waiting).toBe(0);

    const oldest = await idle();
    await eventually(() => expect(server.waiting).toBe(1));
    const second = await idle();
    await eventually(() => expect(server.waiting).toBe(2));
    const closed = once(oldest, 'close');
    const third = await idle();
    await closed;
    expect([second.destroyed, third.destroyed, carriers[0]?.destroyed]).toEqual([false, false, false]);
    expect(server.waiting).toBe(2);

    for (const socket of [...sockets, ...carriers]) socket.destroy();
    await eventually(() => expect(server.waiting).toBe(0));
    server.stopAccepting();
  });
});
