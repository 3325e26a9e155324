// A TLS port that recognizes clients by their first message: certificate renewal, ACME authorities that validate, and unencrypted
// requests.
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { type ConnectionOptions, connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { Admission } from '@tunnel/rules/admission';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { answerToHello, eventually, recordHello, renewedCertificate, testCertificate } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ConnectionGate } from '../gate/connection-gate.ts';
import { TlsTerms } from '../tls/tls-options.ts';
import { HttpListener, refusedAsJson } from './http-listener.ts';

const pairOf = ({ cert, key }: { cert: string; key: string }) => ({ cert: Buffer.from(cert), key: Buffer.from(key) });
const FIRST = pairOf(testCertificate());
const SECOND = pairOf(renewedCertificate());
const TERMS = new TlsTerms(new Secret('of these tests'), systemClock);
const LIMITS = { limits: { visitors: 0, control: 0, api: 100 }, perNetwork: 100 };

let listener: HttpListener;
let gate: ConnectionGate;
let challenge: SecureContext | null;
let challenged: (string | null)[];
const cleanups: (() => unknown)[] = [];

beforeEach(async () => {
  challenge = null;
  challenged = [];
  const logger = createLogger({ level: 'silent', format: 'json' });
  gate = new ConnectionGate({ admission: new Admission(LIMITS), trustedProxies: [], clock: systemClock, logger });
  listener = new HttpListener({
    on: { host: '127.0.0.1', port: 0, key: 'port' },
    gate,
    kind: 'platform',
    tls: true,
    onRequest: ({ url }, response) => void response.end(`secure ${url}`),
    bounds: { headTimeoutMs: 400, requestTimeoutMs: 60_000 },
    refused: refusedAsJson(() => 'req_1'),
    door: {
      clock: systemClock,
      challengeFor: async (host) => {
        challenged.push(host);
        return challenge;
      },
      onClearRequest: ({ url }, response) => void response.writeHead(400).end(`clear ${url}`),
    },
  });
  await listener.start();
  cleanups.push(() => listener.stop());
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const renew = (pair: typeof FIRST): void => listener.renew(TERMS.optionsOf(pair, 'platform'));

const shake = async (options: ConnectionOptions = {}): Promise<TLSSocket> => {
  const { port } = listener.address;
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false, ...options });
  cleanups.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
};

const bodyOf = (agent: Agent): Promise<{ body: string; serial: string }> =>
  new Promise((resolve, reject) => {
    const { port } = listener.address;
    request({ port, host: '127.0.0.1', path: '/a', agent, rejectUnauthorized: false }, (response) => {
      const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve({ body, serial }));
    })
      .on('error', reject)
      .end();
  });

const plain = async (text: string): Promise<string> => {
  const socket = connectPlain(listener.address.port, '127.0.0.1');
  cleanups.push(() => socket.destroy());
  let said = '';
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  socket.write(text);
  await once(socket, 'close');
  return said;
};

it('a TLS listener refuses handshakes until its first certificate, and accepts them afterwards', async () => {
  await expect(shake()).rejects.toThrow();
  renew(FIRST);
  expect((await shake()).authorized).toBe(false);
});

it('a renewed certificate is used for new connections, and open connections continue', async () => {
  renew(FIRST);
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanups.push(() => kept.destroy());
  const before = await bodyOf(kept);
  renew(SECOND);
  for (let round = 0; round < 5; round += 1) {
    expect(await bodyOf(kept)).toEqual(before);
    const fresh = new Agent();
    const after = await bodyOf(fresh);
    expect(after.body).toBe('secure /a');
    expect(after.serial).not.toBe(before.serial);
  }
});

it("an ACME authority gets its challenge certificate, with or without a server certificate; others get the server's", async () => {
  challenge = createSecureContext(SECOND);
  const asked = await shake({ ALPNProtocols: ['acme-tls/1'], servername: 'Platform.Test' });
  expect([asked.alpnProtocol, challenged]).toEqual(['acme-tls/1', ['platform.test']]);
  const shown = asked.getPeerCertificate().serialNumber;
  await once(asked.resume(), 'close');
  renew(FIRST);
  const other = await shake({ ALPNProtocols: ['http/1.1'] });
  expect(other.getPeerCertificate().serialNumber).not.toBe(shown);
  expect(challenged).toHaveLength(1);
});

it('an ACME authority without a pending challenge is disconnected', async () => {
  renew(FIRST);
  await expect(shake({ ALPNProtocols: ['acme-tls/1'] })).rejects.toThrow();
  expect(challenged).toEqual(['localhost']);
});

it('an unencrypted request gets a 400 even before the first certificate, and incomplete input is disconnected', async () => {
  const answer = await plain('GET /x HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1.1 400 .*clear \/x/s);
  expect(await plain('no request at all\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
  // A connection that sends nothing, and a connection that sends the start of a ClientHello.
  for (const silent of ['', '\x16\x03\x01']) expect(await plain(silent)).not.toMatch(/200/);
  expect(await plain('\x16\x03\x01\x00\x05hello')).toBe('');
});

it('a TLS listener frees every place when it stops, with connections in any state', async () => {
  renew(FIRST);
  const open = [await shake(), await shake()];
  connectPlain(listener.address.port, '127.0.0.1').on('error', () => {});
  await eventually(() => expect(gate.admission.used.api).toBeGreaterThanOrEqual(3));
  await listener.stop();
  await eventually(() => expect(gate.admission.used.api).toBe(0));
  expect(open.every((socket) => socket.readyState !== 'opening')).toBe(true);
});

it('expensive key agreement groups are refused before and after the first certificate', async () => {
  const hello = await recordHello('ffdhe2048');
  const { port } = listener.address;
  const before = await answerToHello(port, hello);
  renew(FIRST);
  expect([before, await answerToHello(port, hello)]).toEqual([21, 21]);
  expect(await answerToHello(port, await recordHello('P-256'))).toBe(22);
});
