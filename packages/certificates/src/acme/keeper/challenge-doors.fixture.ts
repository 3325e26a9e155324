// The two ports that an authority visits: HTTP and TLS on loopback, which answer challenges from a store like an edge.
import { createServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createSecureContext, createServer as createTlsServer, type SecureContext } from 'node:tls';
import { testCertificate } from '@tunnel/testkit';
import { challengeCertificate } from '../client/challenge-answers.ts';
import type { CertificateStore } from './certificate-store.ts';

export interface ChallengeDoors {
  readonly httpPort: number;
  readonly tlsPort: number;
  /** Store of the challenge answers; null if no challenge is answered. */
  store: CertificateStore | null;
  /** Closes the TLS port, as for a host with TLS passthrough, where the edge does not terminate TLS. */
  closeTls(): Promise<void>;
  close(): Promise<void>;
}

const PATH = /^\/\.well-known\/acme-challenge\/([\w-]+)$/;

export const openChallengeDoors = async (): Promise<ChallengeDoors> => {
  const find = async (key: { token: string } | { tlsName: string }) =>
    (await doors.store?.findChallenge(key, Date.now())) ?? null;
  const http = createServer((request, response) => {
    void find({ token: PATH.exec(request.url ?? '')?.[1] ?? '' }).then((answer) => {
      response.writeHead(answer === null ? 404 : 200).end(answer?.keyAuthorization);
    });
  });
  const contextFor = async (tlsName: string): Promise<SecureContext> => {
    const answer = await find({ tlsName });
    if (answer === null) throw new Error('no such challenge');
    return createSecureContext(await challengeCertificate(answer, Date.now()));
  };
  const tls = createTlsServer({
    ...testCertificate(),
    ALPNProtocols: ['acme-tls/1'],
    SNICallback: (tlsName, done) => {
      void contextFor(tlsName).then(done.bind(null, null), done);
    },
  });
  tls.on('tlsClientError', () => {});
  const doors = {
    httpPort: await listen(http),
    tlsPort: await listen(tls),
    store: null,
    closeTls: () => closeAll([tls]),
    close: () => closeAll([http, tls]),
  } as ChallengeDoors;
  return doors;
};

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });

const closeAll = async (servers: readonly Server[]): Promise<void> => {
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
};
