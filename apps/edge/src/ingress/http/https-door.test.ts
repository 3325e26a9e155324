// The https port with certificates by name and with passthrough tunnels. A ClientHello reaches the right destination, however it is
// split.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { adoptAccepted, allowStaticReads, splice } from '@tunnel/mux';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  hello,
  helloMessage,
  inRecords,
  postQuantumShare,
  protocols,
  serverNames,
} from '../../../../../packages/http-shell/src/tls/hello.fixture.ts';
import type { Route } from '../../routing/registry.ts';
import { openGate } from '../gate.fixture.ts';
import type { CertificateStore } from '../tls/certificate-store.ts';
import { ChallengeHandshakes } from '../tls/challenge-handshakes.ts';
import { makeCertificate, makeShortKey } from '../tls/made-certificate.fixture.ts';
import type { Passthrough } from '../tls/sni-router.ts';
import {
  ask,
  dialTls,
  emptyStore,
  type HttpsStand,
  pairOf,
  startHttpsPort,
  startHttpsStand,
  visitHttp2,
} from './https.fixture.ts';

const shop = makeCertificate('shop.test');
const wild = makeCertificate('*.wild.test');
const secret = makeCertificate('secret.test');
const UNRECOGNIZED_NAME = '15030300020270';

const cleanups: (() => unknown)[] = [];
let stand: HttpsStand;
let store: CertificateStore;
/** Service behind a passthrough tunnel. TLS ends at this server, so that the edge cannot read the connection. */
let service: tls.Server;

/** Acts like a passthrough tunnel without a client: dials the service and connects both sockets. */
const straightTo = (target: tls.Server): Passthrough => ({
  routeFor: (host) => (host === 'secret.test' ? ({} as Route) : undefined),
  accept: (visitor, _accepted, _route, first) => {
    const { port } = target.address() as net.AddressInfo;
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).pause();
    const away = adoptAccepted(socket);
    away.write(first, 0, first.length, true);
    splice(adoptAccepted(visitor), away, {
      onBytes: () => {},
      onDone: () => {},
      abandon: (error) => expect.fail(String(error)),
    });
  },
});

beforeEach(async () => {
  const web = createServer((_request, response) => response.end('from the service'));
  service = tls.createServer({ ...secret, ALPNProtocols: ['acme-tls/1', 'http/1.1'] }, (socket) => {
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  for (const server of [web, service]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  store = emptyStore();
  store.set(['shop.test'], shop);
  store.set(['*.wild.test'], wild);
  stand = await startHttpsStand(
    (web.address() as net.AddressInfo).port,
    { domain: 'localhost' },
    { certificates: store, passthrough: straightTo(service) },
  );
  cleanups.push(() => {
    stand.stop();
    store.stop();
    web.closeAllConnections();
    web.close();
    service.close();
  });
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  allowStaticReads(true);
});

const dial = (options: tls.ConnectionOptions): tls.TLSSocket => {
  const socket = dialTls(stand, { rejectUnauthorized: false, ...options });
  cleanups.push(() => socket.destroy());
  return socket;
};

const subjectFor = async (options: tls.ConnectionOptions): Promise<string> => {
  const socket = dial(options);
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  // The socket is not destroyed, because its last handshake message must arrive.
  socket.end();
  return String(subject.CN);
};

/** Sends the pieces and returns all bytes that come back until the connection closes, in hexadecimal. */
const answerTo = async (...pieces: readonly Uint8Array[]): Promise<string> => {
  const socket = net.connect({ port: stand.port.address.port, host: '127.0.0.1', noDelay: true });
  cleanups.push(() => socket.destroy());
  socket.on('error', () => {});
  const came: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => came.push(chunk));
  const isClosed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await isClosed;
  return Buffer.concat(came).toString('hex');
};

const GET = 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n';

describe.each([true, false])('the https port with socket handles of the edge: %s', (isStatic) => {
  beforeEach(async () => {
    if (isStatic) return;
    // The listener must be opened again to use no handles of the edge.
    allowStaticReads(false);
    const { address } = stand.port;
    stand.port.stop();
    await eventually(async () => {
      await stand.port.start();
    });
    expect(stand.port.address.port).not.toBe(address.port);
  });

  it('presents the certificate of each name, over HTTP/1.1 and HTTP/2, in TLS 1.2 and 1.3', async () => {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      for (const ALPNProtocols of [undefined, ['http/1.1'], ['h2', 'http/1.1']]) {
        const options = { maxVersion, ...(ALPNProtocols === undefined ? {} : { ALPNProtocols }) };
        expect(await subjectFor({ ...options, servername: 'SHOP.test' })).toBe('shop.test');
        expect(await subjectFor({ ...options, servername: 'shop.test.' })).toBe('shop.test');
        expect(await subjectFor({ ...options, servername: 'a.wild.test' })).toBe('*.wild.test');
      }
    }
    await eventually(() => expect(stand.port.totals.terminated).toBe(18));
  });

  it('refuses names without a certificate with alert 112, which reaches the visitor', async () => {
    for (const name of [
      'nobody.test',
      'a.b.wild.test',
      'wild.test',
      'web.localhost',
      '127.0.0.1',
      'm\u00fcnchen.test',
    ]) {
      expect(await answerTo(hello(serverNames(name)))).toBe(UNRECOGNIZED_NAME);
    }
    expect(await answerTo(hello())).toBe(UNRECOGNIZED_NAME);
    const refused = once(dial({ servername: 'nobody.test' }), 'secureConnect');
    await expect(refused).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' });
    expect(stand.port.totals).toMatchObject({ no_certificate: 8, terminated: 0, failed: 0 });
    expect(stand.port.handshakes).toBe(0);
  });

  it('refuses no name when there is a certificate for all names', async () => {
    store.setForAll(pairOf({ cert: String(wild.cert), key: String(wild.key) }));
    for (const ALPNProtocols of [['http/1.1'], ['h2']]) {
      expect(await subjectFor({ ALPNProtocols, servername: 'nobody.test' })).toBe('*.wild.test');
      expect(await subjectFor({ ALPNProtocols, servername: '' })).toBe('*.wild.test');
      expect(await subjectFor({ ALPNProtocols, servername: 'shop.test' })).toBe('shop.test');
    }
    store.setForAll(secret);
    for (const ALPNProtocols of [['http/1.1'], ['h2']]) {
      expect(await subjectFor({ ALPNProtocols, servername: 'nobody.test' })).toBe('secret.test');
    }
  });

  it('passes connections for a passthrough tunnel on, including TLS-ALPN challenges', async () => {
    for (const ALPNProtocols of [['http/1.1'], ['acme-tls/1']]) {
      const visitor = dial({ servername: 'secret.test', ALPNProtocols });
      await once(visitor, 'secureConnect');
      expect([visitor.getPeerCertificate().subject.CN, visitor.alpnProtocol]).toEqual([
        'secret.test',
        ALPNProtocols[0],
      ]);
      const large = Buffer.alloc(300_000, 'passed on');
      visitor.write(large);
      let came = 0;
      for await (const chunk of visitor) {
        came += (chunk as Buffer).length;
        if (came === large.length) visitor.end();
      }
      expect(came).toBe(large.length);
    }
    expect(stand.port.totals).toMatchObject({ passthrough: 2, terminated: 0, challenge: 0 });
    expect(stand.port.handshakes).toBe(0);
  });

  it('closes challenges for names without a passthrough tunnel', async () => {
    for (const name of ['shop.test', 'nobody.test']) {
      expect(await answerTo(hello(serverNames(name), protocols('acme-tls/1')))).toBe('');
    }
    expect(stand.port.totals).toMatchObject({ challenge: 2, failed: 0 });
  });

  it('closes a connection without an answer if its first message is not TLS, broken or too long', async () => {
    expect(await answerTo(Buffer.from(GET))).toBe('');
    expect(await answerTo(hello(Buffer.of(0, 16, 0, 9)))).toBe('');
    expect(await answerTo(Buffer.of(22, 3, 1, 0x40, 0, 1, 0, 0x44, 0))).toBe('');
    expect(await answerTo(Buffer.from('802e0100020015', 'hex'))).toBe('');
    await eventually(() => expect(stand.port.totals.failed).toBe(4));
    expect(stand.port.handshakes).toBe(0);
  });

  it('accepts a ClientHello in many segments and records', async () => {
    const message = helloMessage(postQuantumShare(), serverNames('nobody.test'));
    const bytes = inRecords(message);
    expect(await answerTo(bytes.subarray(0, 1200), bytes.subarray(1200))).toBe(UNRECOGNIZED_NAME);
    const pieces = [...inRecords(message, 200)].map((byte) => Buffer.of(byte));
    expect(await answerTo(...pieces)).toBe(UNRECOGNIZED_NAME);
  });

  it.each(['shop.test', 'secret.test'])(
    'completes a handshake that arrives byte by byte, for %s',
    async (servername) => {
      // Protocol names that no server accepts make the ClientHello long enough for two segments.
      const ALPNProtocols = ['http/1.1', ...Array.from({ length: 8 }, (_, n) => `${n}`.repeat(200))];
      const slow = net.createServer((near) => {
        const far = net.connect({ port: stand.port.address.port, host: '127.0.0.1', noDelay: true });
        far.on('error', () => {}).pipe(near.on('error', () => {}));
        near.on('data', (chunk: Buffer) => {
          for (const byte of chunk) far.write(Buffer.of(byte));
        });
      });
      await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
      cleanups.push(() => slow.close());
      const { port } = slow.address() as net.AddressInfo;
      const visitor = tls.connect({ port, host: '127.0.0.1', servername, ALPNProtocols, rejectUnauthorized: false });
      cleanups.push(() => visitor.destroy());
      await once(visitor, 'secureConnect');
      expect(visitor.getPeerCertificate().subject.CN).toBe(servername);
    },
  );

  it('makes handshakes wait for certificates that are not ready', async () => {
    const perSecond = 20;
    const slow = emptyStore({ contextsPerSecond: perSecond });
    const port = await startHttpsPort(stand.http.ingress, openGate(), { certificates: slow });
    cleanups.push(() => port.stop());
    const names = Array.from({ length: 10 }, (_, n) => `n${n}.test`);
    for (const name of names) slow.set([name], shop);
    const began = performance.now();
    const all = names.map((servername, n) =>
      subjectFor({ servername, port: port.address.port, ALPNProtocols: [n % 2 === 0 ? 'h2' : 'http/1.1'] }),
    );
    expect(new Set(await Promise.all(all))).toEqual(new Set(['shop.test']));
    expect(performance.now() - began).toBeGreaterThan((names.length - 1) * (1000 / perSecond) - 1);
  });

  it('prepares no certificate for visitors that leave while they wait', async () => {
    const perSecond = 20;
    const clock = new FakeClock();
    const slow = emptyStore({ contextsPerSecond: perSecond, clock });
    const port = await startHttpsPort(stand.http.ingress, openGate(), { certificates: slow });
    cleanups.push(() => port.stop());
    const late = Array.from({ length: 20 }, (_, n) => `late${n}.test`);
    for (const name of late) slow.set([name], shop);
    const made = (): number => late.filter((name) => slow.find(name)?.context !== null).length;
    const leaving = late.map((servername) => dial({ servername, port: port.address.port }).on('error', () => {}));
    // The first certificate is prepared at once. Further visitors wait, because the clock stands still.
    await eventually(() => expect([port.totals.terminated, port.handshakes]).toEqual([1, late.length - 1]));
    await clock.advance(1000 / perSecond);
    expect(made()).toBe(2);
    await eventually(() => expect(port.handshakes).toBe(late.length - 2));
    for (const socket of leaving) socket.destroy();
    await eventually(() => expect(port.handshakes).toBe(0));
    await clock.advance(late.length * (1000 / perSecond));
    expect(made()).toBe(2);
  });
});

it('requests are served with the certificate of a name, and a name without a certificate fails', async () => {
  const plain = dial({ servername: 'shop.test' });
  await once(plain, 'secureConnect');
  plain.write(GET);
  let answer = '';
  for await (const chunk of plain) answer += String(chunk);
  expect(answer).toContain('from the service');
  const session = visitHttp2({ port: stand.port }, 'web.localhost');
  await expect(ask(session, { ':path': '/' })).rejects.toThrow();
  session.destroy();
});

it('sessions are resumed over HTTP/1.1 and HTTP/2, even with a new certificate of the same name', async () => {
  const first = dial({ servername: 'shop.test', ALPNProtocols: ['h2', 'http/1.1'] });
  const [session] = (await once(first, 'session')) as [Buffer];
  first.destroy();
  const resumed = async (ALPNProtocols: string[]): Promise<boolean> => {
    const again = dial({ servername: 'shop.test', session, ALPNProtocols });
    await once(again, 'secureConnect');
    const isReused = again.isSessionReused();
    // A visitor that resets the connection here would not complete the handshake at the server.
    again.end();
    await once(again, 'close');
    return isReused;
  };
  const { full, resumed: before } = stand.http.gate.handshakes.visitors;
  expect(await resumed(['h2'])).toBe(true);
  expect(await resumed(['http/1.1'])).toBe(true);
  await eventually(() => expect(stand.http.gate.handshakes.visitors).toEqual({ full, resumed: before + 2 }));
  expect(store.set(['shop.test'], makeCertificate('shop.test'))).toBeNull();
  expect(await resumed(['h2'])).toBe(true);
  expect(await resumed(['http/1.1'])).toBe(true);
});

it('OpenSSL completes handshakes for known names and gets alert 112 for an unknown name', async () => {
  const said = (name: string): Promise<string> =>
    new Promise((resolve) => {
      const to = ['s_client', '-connect', `127.0.0.1:${stand.port.address.port}`, '-servername', name];
      execFile('openssl', to, (_error, out, err) => resolve(out + err)).stdin?.end();
    });
  expect(await said('shop.test')).toContain('subject=CN = shop.test');
  expect(await said('secret.test')).toContain('subject=CN = secret.test');
  expect(await said('nobody.test')).toContain('alert number 112');
});

it('300 visitors that send no complete ClientHello do not keep other visitors out', async () => {
  const silent: net.Socket[] = [];
  cleanups.push(() => {
    for (const socket of silent) socket.destroy();
  });
  const { port } = stand.port.address;
  const first = hello(serverNames('shop.test')).subarray(0, 60);
  for (let n = 0; n < 300; n++) {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {});
    if (n % 2 === 0) socket.write(first);
    silent.push(socket);
  }
  await eventually(() => expect(stand.port.handshakes).toBe(300));
  expect(await subjectFor({ servername: 'shop.test' })).toBe('shop.test');
  await eventually(() => expect(stand.port.totals.terminated).toBe(1));
  expect(stand.port.handshakes).toBe(300);
});

it('a fault with a certificate or a handshake ends only the connection concerned', async () => {
  const told: string[] = [];
  const report = (error: unknown, where: string): void => void told.push(`${where}: ${(error as Error).message}`);
  const broken = emptyStore({ contextsPerSecond: 20 });
  const ingress = Object.assign(Object.create(stand.http.ingress), { report }) as typeof stand.http.ingress;
  // A matching pair, but OpenSSL refuses to build a context for it.
  const short = makeShortKey();
  expect(broken.set(['short.test'], short)).toBeNull();
  expect(broken.set(['shop.test'], shop)).toBeNull();
  const port = await startHttpsPort(ingress, openGate(), { certificates: broken });
  cleanups.push(() => port.stop());
  const to = { port: port.address.port };
  await expect(once(dial({ ...to, servername: 'short.test' }), 'secureConnect')).rejects.toThrow();
  expect(told).toHaveLength(1);
  expect([told[0]?.split(': ')[0], told[0]]).toEqual(['https.certificate', expect.stringContaining('too small')]);
  expect(await subjectFor({ ...to, servername: 'shop.test' })).toBe('shop.test');
  allowStaticReads(false);
  const plain = await startHttpsPort(ingress, openGate(), { certificates: broken });
  cleanups.push(() => plain.stop());
  vi.spyOn(plain.sniRouter, 'destinationOf').mockImplementationOnce(() => {
    throw new Error('at the door');
  });
  const servername = 'shop.test';
  await expect(once(dial({ port: plain.address.port, servername }), 'secureConnect')).rejects.toThrow();
  expect(told.at(-1)?.split(': ')).toEqual(['https.hello', 'at the door']);
  expect(await subjectFor({ port: plain.address.port, servername })).toBe('shop.test');
  await eventually(() => expect([port.handshakes, plain.handshakes]).toEqual([0, 0]));
});

it('a fault during the validation of a name ends only the connection concerned', async () => {
  const told: string[] = [];
  const report = (error: unknown, where: string): void => void told.push(`${where}: ${(error as Error).message}`);
  const ingress = Object.assign(Object.create(stand.http.ingress), { report }) as typeof stand.http.ingress;
  const certificates = { isWanted: () => true, findChallenge: async () => null };
  const challenges = new ChallengeHandshakes({ domain: 'edge.test', certificates, clock: new FakeClock() });
  const port = await startHttpsPort(ingress, openGate(), { certificates: store, challenges });
  cleanups.push(() => port.stop());
  vi.spyOn(port, 'leaves').mockImplementationOnce(() => {
    throw new Error('when it leaves');
  });
  const to = { port: port.address.port, servername: 'shop.test' };
  await expect(once(dial({ ...to, ALPNProtocols: ['acme-tls/1'] }), 'secureConnect')).rejects.toThrow();
  expect(told[0]?.split(': ')).toEqual(['https.challenge', 'when it leaves']);
  expect(await subjectFor(to)).toBe('shop.test');
  await eventually(() => expect(port.handshakes).toBe(0));
});
