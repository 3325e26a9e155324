import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openGate } from '../ingress/gate.fixture.ts';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { ControlServer } from './control-server.ts';
import { askUpgrade } from './raw-carrier.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

const file = (name: string): Buffer =>
  readFileSync(new URL(`../../../../packages/testkit/fixtures/tls/${name}`, import.meta.url));

let fixture: ControlFixture;
const stop = () => fixture.stop();

describe('the control port', () => {
  afterEach(stop);
  beforeEach(async () => {
    fixture = await startControl({ clock: new FakeClock() });
  });

  it('responds with 404 or 426 to requests without an upgrade', async () => {
    const url = `http://127.0.0.1:${fixture.port}`;
    const elsewhere = await fetch(`${url}/index.html`);
    expect([elsewhere.status, await elsewhere.text()]).toEqual([404, 'nothing at /index.html\n']);
    const control = await fetch(`${url}/_control?x=1`);
    expect([control.status, await control.text()]).toEqual([426, 'this path requires an upgrade\n']);
    expect((await fetch(`${url}/_carrier`)).status).toBe(426);
  });

  it('rejects upgrades on unknown paths and to unknown protocols', async () => {
    expect((await askUpgrade(fixture.port, { path: '/', upgrade: 'websocket' })).status).toBe(404);
    expect((await askUpgrade(fixture.port, { path: '/_control', upgrade: 'h2c' })).status).toBe(426);
    expect((await askUpgrade(fixture.port, { path: '/_control', upgrade: 'websocket' })).status).toBe(400);
  });

  it('keeps working after bytes that are not HTTP', async () => {
    const socket = connect(fixture.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.end(Buffer.from([0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5]));
    await once(socket.resume(), 'close');
    await RawClient.enter(fixture.port, 'op');
  });
});

describe('the control port with a certificate', () => {
  afterEach(stop);
  beforeEach(async () => {
    fixture = await startControl({ clock: new FakeClock(), tls: { cert: file('cert.pem'), key: file('key.pem') } });
  });

  it('uses TLS and offers the protocols tunnel/1 and http/1.1', async () => {
    const client = await RawClient.connect(fixture.port, { scheme: 'wss' });
    client.auth('op');
    await client.next('AuthOk');
    for (const alpn of ['tunnel/1', 'http/1.1']) {
      const socket = connectTls({
        host: '127.0.0.1',
        port: fixture.port,
        rejectUnauthorized: false,
        ALPNProtocols: [alpn],
      });
      await once(socket, 'secureConnect');
      expect(socket.alpnProtocol).toBe(alpn);
      socket.destroy();
    }
  });

  it('accepts carriers over TLS 1.3 only', async () => {
    const client = await RawClient.connect(fixture.port, { scheme: 'wss' });
    client.auth('op');
    const [first = '', second = ''] = (await client.next('AuthOk')).carriers.tokens;
    const old = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;
    const refused = await askUpgrade(fixture.port, { token: first, tls: old });
    expect([refused.status, refused.text.split('\r\n\r\n')[1]]).toEqual([426, 'carriers need TLS 1.3\n']);
    const now = { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3', alpn: 'tunnel/1' } as const;
    expect((await askUpgrade(fixture.port, { token: second, tls: now })).status).toBe(101);
    expect(fixture.control.figures.carriers).toBe(1);
  });

  it('keeps working after clients without TLS', async () => {
    await expect(fetch(`http://127.0.0.1:${fixture.port}/_control`)).rejects.toThrow();
    await expect(RawClient.connect(fixture.port)).rejects.toThrow();
    await RawClient.connect(fixture.port, { scheme: 'wss' });
  });
});

describe.each([
  ['plain', null],
  ['TLS', { cert: file('cert.pem'), key: file('key.pem') }],
])('idle connections on the control port (%s)', (kind, tls) => {
  it('are bounded: the oldest is closed for a new connection, and authenticated connections stay open', async () => {
    const gate = openGate({ control: 3 });
    const sockets: Socket[] = [];
    const carriers: Socket[] = [];
    const server = new ControlServer({
      listenOn: { host: '127.0.0.1', port: 0, key: 'control_port' },
      gate,
      refusal: () => null,
      onControl: () => {},
      onSpeed: () => {},
      onCarrier: (_request, socket, _head, accepted) => {
        expect(gate.identify(accepted, 'alice', 'carrier')).toBeNull();
        carriers.push(socket);
      },
      report: rethrow,
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
    expect(gate.admission.used.control).toBe(1);

    const oldest = await idle();
    await eventually(() => expect(gate.admission.used.control).toBe(2));
    const second = await idle();
    await eventually(() => expect(gate.admission.used.control).toBe(3));
    const closed = once(oldest, 'close');
    const third = await idle();
    await closed;
    expect([second.destroyed, third.destroyed, carriers[0]?.destroyed]).toEqual([false, false, false]);
    expect([gate.admission.used.control, gate.admission.refusals.get('shed')]).toEqual([3, 1]);

    for (const socket of [...sockets, ...carriers]) socket.destroy();
    await eventually(() => expect(gate.admission.used.control).toBe(0));
    server.stopAccepting();
  });
});
