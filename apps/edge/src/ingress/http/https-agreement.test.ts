// TLS handshakes of the https port: cipher suites and resumed sessions.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { FakeClock, renewedCertificate, testCertificate } from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dialTls, emptyStore, type HttpsStand, pairOf, startHttpsStand } from './https.fixture.ts';

const service = createServer((_request, response) => response.end('from the service'));
let stand: HttpsStand;
/** Clock for session tickets only. */
const day = new FakeClock();

beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const certificates = emptyStore({ day });
  certificates.setForAll(pairOf(testCertificate()));
  stand = await startHttpsStand((service.address() as AddressInfo).port, {}, { certificates });
  certificates.terms.start(3600 * 1000, () => {
    certificates.renewTickets();
    stand.port.renew();
  });
});

afterAll(() => {
  stand.stop();
  service.closeAllConnections();
  service.close();
});

const TLS_1_2 = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;

const agreedOn = async (options: ConnectionOptions): Promise<string> => {
  const socket = dialTls(stand, options);
  try {
    await once(socket, 'secureConnect');
    return socket.getCipher().name;
  } finally {
    socket.destroy();
  }
};

it("the https port chooses AES-128, whatever the order of the visitor's ciphers", async () => {
  expect(await agreedOn({})).toBe('TLS_AES_128_GCM_SHA256');
  expect(await agreedOn(TLS_1_2)).toBe('ECDHE-ECDSA-AES128-GCM-SHA256');
});

it('the https port accepts the only cipher a visitor offers, and ChaCha20 if the visitor lists it first', async () => {
  expect(await agreedOn({ ciphers: 'TLS_AES_256_GCM_SHA384' })).toBe('TLS_AES_256_GCM_SHA384');
  const telephone = 'TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384';
  expect(await agreedOn({ ciphers: telephone })).toBe('TLS_CHACHA20_POLY1305_SHA256');
  const older = 'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256';
  expect(await agreedOn({ ...TLS_1_2, ciphers: older })).toBe('ECDHE-ECDSA-CHACHA20-POLY1305');
});

it.each(['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384', 'ECDHE-ECDSA-AES128-CCM', 'DHE-RSA-AES128-GCM-SHA256'])(
  'the https port refuses the cipher %s',
  async (ciphers) => {
    await expect(agreedOn({ ...TLS_1_2, ciphers })).rejects.toThrow(/handshake failure/);
  },
);

it('the https port refuses renegotiation', async () => {
  const socket = dialTls(stand, TLS_1_2);
  await once(socket, 'secureConnect');
  const refused = once(socket, 'error');
  socket.renegotiate({}, () => {});
  expect(await refused).toMatchObject([{ code: 'ERR_SSL_NO_RENEGOTIATION' }]);
});

const GET = 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n';

interface Visit {
  readonly isReused: boolean;
  readonly session: Buffer | undefined;
}

/** Makes one visit and reads the response to its end, because the session ticket has certainly arrived by then. */
const visit = async (options: ConnectionOptions): Promise<Visit> => {
  // The certificate is renewed between visits and does not matter here, so that it is not verified.
  const socket = dialTls(stand, { ...options, rejectUnauthorized: false });
  let session: Buffer | undefined;
  let answer = '';
  socket.on('session', (ticket: Buffer) => {
    session = ticket;
  });
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  await once(socket, 'secureConnect');
  const isReused = socket.isSessionReused();
  socket.write(GET);
  await once(socket, 'close');
  expect(answer).toContain('from the service');
  return { isReused, session };
};

it.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'the https port resumes %s sessions, even after a certificate renewal, until the day ends',
  async (version) => {
    const pinned = { minVersion: version, maxVersion: version };
    const first = await visit(pinned);
    expect(first.isReused).toBe(false);
    const again = await visit({ ...pinned, session: first.session });
    expect(again.isReused).toBe(true);
    stand.port.certificates.setForAll(pairOf(renewedCertificate()));
    const late = await visit({ ...pinned, session: again.session ?? first.session });
    expect(late.isReused).toBe(true);
    const fresh = await visit(pinned);
    await day.advance(24 * 3600 * 1000);
    const tomorrow = await visit({ ...pinned, session: fresh.session });
    expect(tomorrow.isReused).toBe(false);
    expect((await visit({ ...pinned, session: tomorrow.session })).isReused).toBe(true);
  },
);

it('the https port resumes sessions of OpenSSL', async () => {
  const { port } = stand.port.address;
  const child = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, '-tls1_2', '-reconnect'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1');
    if (said.match(/^Reused, TLSv1\.2/gm)?.length === 5) child.stdin.end('Q\n');
  });
  await once(child, 'close');
  expect(said.match(/^(New|Reused), TLSv1\.2/gm)).toEqual(['New, TLSv1.2', ...Array(5).fill('Reused, TLSv1.2')]);
});
