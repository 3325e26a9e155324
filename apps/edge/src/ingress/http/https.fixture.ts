// An https port in front of the HTTP stand, and HTTP/2 visitors that verify its certificate. Used by tests only.
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import * as tls from 'node:tls';
import { TlsTerms } from '@tunnel/http-shell';
import { type Clock, Secret, systemClock } from '@tunnel/runtime';
import { testCertificate } from '@tunnel/testkit';
import { openGate } from '../gate.fixture.ts';
import { CertificateStore } from '../tls/certificate-store.ts';
import type { ChallengeHandshakes } from '../tls/challenge-handshakes.ts';
import type { Passthrough } from '../tls/sni-router.ts';
import { type HttpStand, startHttpStand } from './http.fixture.ts';
import type { HttpIngress } from './http-ingress.ts';
import { HttpsPort } from './https-port.ts';

type StandOptions = Parameters<typeof startHttpStand>[1];

export interface HttpsStand {
  readonly http: HttpStand;
  readonly port: HttpsPort;
  stop(): void;
}

interface PortOptions {
  readonly certificates?: CertificateStore;
  readonly passthrough?: Passthrough | null;
  readonly challenges?: ChallengeHandshakes | null;
  readonly clock?: Clock;
}

/** Starts a stand with the tunnel `web.localhost`. */
export const startHttpsStand = async (
  localPort: number,
  options: StandOptions = {},
  secure: PortOptions = {},
): Promise<HttpsStand> => {
  const http = await startHttpStand(localPort, { domain: 'localhost', ...options });
  const port = await startHttpsPort(http.ingress, http.gate, secure);
  const stop = (): void => {
    port.stop();
    http.stop();
  };
  return { http, port, stop };
};

/** Starts an https port in front of any ingress. */
export const startHttpsPort = async (
  ingress: HttpIngress,
  gate = openGate(),
  { certificates = storeForAll(), passthrough = null, challenges = null, clock = systemClock }: PortOptions = {},
): Promise<HttpsPort> => {
  const on = { host: '127.0.0.1', port: 0, key: '[server] https_port' };
  const port = new HttpsPort({ on, certificates, passthrough, challenges, ingress, gate, clock });
  await port.start();
  return port;
};

/** Creates a store without certificates. The clock `day` decides when the key of session tickets changes. */
export const emptyStore = ({
  day = systemClock,
  clock = systemClock,
  ...limits
}: {
  day?: Clock;
  /** Clock for the rate at which contexts are built. */
  clock?: Clock;
  contextsMax?: number;
  contextsPerSecond?: number;
} = {}): CertificateStore => {
  const terms = new TlsTerms(new Secret('of these tests'), day);
  return new CertificateStore({ terms, clock, domain: 'localhost', ...limits });
};

/** Creates a store with a certificate for every name, like the files of `[tls]`. */
const storeForAll = (): CertificateStore => {
  const store = emptyStore();
  store.setForAll(pairOf(testCertificate()));
  return store;
};

export const pairOf = ({ cert, key }: { cert: string; key: string }): { cert: Buffer; key: Buffer } => ({
  cert: Buffer.from(cert),
  key: Buffer.from(key),
});

export const dialTls = (stand: Pick<HttpsStand, 'port'>, options: tls.ConnectionOptions = {}): tls.TLSSocket => {
  const { cert } = testCertificate();
  const { port } = stand.port.address;
  // Node.js accepts no wildcard directly below a top-level name, and *.localhost is such a wildcard.
  const checkServerIdentity = (): undefined => undefined;
  return tls.connect({
    host: '127.0.0.1',
    port,
    ca: cert,
    servername: 'web.localhost',
    checkServerIdentity,
    ...options,
  });
};

export const visitHttp2 = (stand: Pick<HttpsStand, 'port'>, authority = 'web.localhost'): ClientHttp2Session => {
  const session = connect(`https://${authority}`, {
    createConnection: () => dialTls(stand, { ALPNProtocols: ['h2'] }),
  });
  session.on('error', () => {});
  return session;
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly raw: readonly string[];
  readonly body: string;
  readonly trailers: IncomingHttpHeaders;
  /** Statuses of the interim heads before the final head. */
  readonly interim: number[];
}

/** Sends one request and returns its whole response. Rejects with the reset code if the stream is reset. */
export const ask = (
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
  requestTrailers?: OutgoingHttpHeaders,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const hasTrailers = requestTrailers !== undefined;
    const stream = session.request(headers, { endStream: body === undefined, waitForTrailers: hasTrailers });
    let answer: Answer | undefined;
    let received = '';
    let trailers: IncomingHttpHeaders = {};
    const interim: number[] = [];
    stream.on('headers', (early: IncomingHttpHeaders) => interim.push(Number(early[':status'])));
    stream.on('response', (head: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      answer = { status: Number(head[':status']), headers: head, raw, body: '', trailers, interim };
    });
    stream.on('trailers', (given: IncomingHttpHeaders) => {
      trailers = given;
    });
    stream.on('wantTrailers', () => stream.sendTrailers(requestTrailers ?? {}));
    stream.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    stream.on('error', () => {});
    stream.on('close', () => {
      if (answer === undefined || stream.rstCode !== 0) reject(new Error(`reset with ${stream.rstCode}`));
      else resolve({ ...answer, body: received, trailers });
    });
    if (body !== undefined) stream.end(body);
  });
