// Visitors over TLS, with HTTP/1.1 and HTTP/2.
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { request as secureRequest } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { testCertificate } from '@tunnel/testkit';
import type { Harness } from './harness.fixture.ts';
import { type Answer, type PublicEndpoint, wholeAnswer } from './http-tunnels.fixture.ts';
import { TLS_CERT } from './stack.fixture.ts';

/** Flags for a client of an edge with the test certificate. */
export const TLS_FLAGS = ['--tls', '--ca-file', TLS_CERT];

/**
 * TLS options of a visitor, with verification of the chain but not of the name: Node.js accepts no wildcard directly below a top-level
 * domain such as *.localhost.
 */
export const TRUST = { ca: testCertificate().cert, checkServerIdentity: () => undefined };

export const nameOf = ({ host }: PublicEndpoint): string => host.replace(/:\d+$/, '');

/** Sends a GET over HTTP/1.1 and TLS, and returns the complete response. */
export const askSecurely = (endpoint: PublicEndpoint, path = '/'): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = secureRequest({
      ...TRUST,
      hostname: '127.0.0.1',
      port: endpoint.port,
      servername: nameOf(endpoint),
      path,
      headers: { host: endpoint.host },
      agent: false,
    });
    sent.on('response', (response) => void wholeAnswer(response).then(resolve, reject));
    sent.on('error', reject).end();
  });

export const dialHttp2 = (harness: Harness, endpoint: PublicEndpoint): ClientHttp2Session => {
  const session = connectHttp2(`https://${endpoint.host}`, {
    createConnection: () =>
      connectTls({
        ...TRUST,
        host: '127.0.0.1',
        port: endpoint.port,
        servername: nameOf(endpoint),
        ALPNProtocols: ['h2'],
      }),
  });
  session.on('error', () => {});
  harness.use({
    close: () => {
      session.destroy();
      return Promise.resolve();
    },
  });
  return session;
};

export interface Http2Answer {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly body: Buffer;
}

export const askHttp2 = (session: ClientHttp2Session, path: string, body?: Buffer): Promise<Http2Answer> =>
  new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path, ':method': body === undefined ? 'GET' : 'POST' });
    let headers: Http2Answer['headers'] = {};
    const pieces: Buffer[] = [];
    stream.on('response', (given) => {
      headers = given;
    });
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('end', () => resolve({ headers, body: Buffer.concat(pieces) }));
    stream.on('error', reject);
    stream.end(body);
  });
