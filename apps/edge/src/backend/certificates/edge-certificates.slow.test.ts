// Runs the conformance suite for both sources of certificates: a platform, and an edge with its own orders.
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import type { EdgeCertificate } from '@tunnel/contract';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { AcmeServer, temporaryDirectory } from '@tunnel/testkit';
import { makeCertificate } from '../../ingress/tls/made-certificate.fixture.ts';
import { LinkFailure } from '../platform-link.ts';
import { type CertificatesStage, conformsToEdgeCertificates } from './edge-certificates.conformance.ts';
import type { AskedChallenge } from './edge-certificates.ts';
import { PlatformCertificates } from './platform-certificates.ts';
import { StandaloneCertificates } from './standalone-certificates.ts';

const DOMAIN = 'tunnels.test';
const OWN = 'shop.example.com';
const logger = createLogger({ level: 'silent', format: 'json' });

const HOUR_MS = 3_600_000;

/** Stage with a scripted platform: the test sets the certificates, and the edge is notified of each change. */
const openPlatform = async (): Promise<CertificatesStage> => {
  const folder = await temporaryDirectory();
  const rows = new Map<string, EdgeCertificate>();
  let edge: PlatformCertificates | null = null;
  let isAway = false;
  let isIssued = false;
  const put = (name: string): void => {
    const { cert, key } = makeCertificate(name);
    const now = Date.now();
    const life = isIssued ? { not_before: now, not_after: now + HOUR_MS, renew_at: null } : NO_LIFE;
    rows.set(name, {
      id: `crt_${name}`,
      names: [name],
      is_operators: name === DOMAIN,
      state: isIssued ? 'valid' : 'ordering',
      issuer: isIssued ? 'Test CA' : null,
      last_error: null,
      ...life,
      pair: isIssued ? { chain: cert.toString(), key: key.toString() } : null,
    });
    edge?.changed({ kind: 'certificate-changed', id: 1, certificate_id: `crt_${name}` });
  };
  const answer = <T>(value: T): T => {
    if (isAway) throw new LinkFailure('away', 'no response in time');
    return value;
  };
  const challenge = { type: 'tls-alpn-01', name: OWN, token: 'of-own', key_authorization: 'of-own.print' } as const;
  const isMeant = (question: object): boolean =>
    !isIssued && Object.values(question).some((asked) => asked === OWN || asked === challenge.token);
  const link = {
    certificates: async () => {
      const lines = answer([{ at: 1 }, ...rows.values(), { end: true }]);
      return new Blob(lines.map((line) => `${JSON.stringify(line)}\n`)).stream();
    },
    certificate: async (id: string) => answer([...rows.values()].find((row) => row.id === id) ?? null),
    challenge: async (question: object) => answer({ challenge: isMeant(question) ? challenge : null }),
  };
  for (const name of [DOMAIN, OWN]) put(name);
  return {
    domain: DOMAIN,
    own: OWN,
    open: () => {
      const copies = { folder: join(folder.path, 'copies'), credential: new Secret('credential') };
      const opened = new PlatformCertificates({ clock: systemClock, logger, link, copies });
      const start = async (): Promise<void> => {
        await opened.start();
        opened.platformHeard(false);
      };
      edge = opened;
      return { edge: opened, start, stop: () => opened.stop() };
    },
    issue: () => {
      isIssued = true;
      for (const name of rows.keys()) put(name);
    },
    renew: async () => put(OWN),
    away: () => {
      isAway = true;
    },
    forget: () => void rows.delete(OWN),
    challenge: () => ({ key: { tlsName: OWN }, token: challenge.token }),
    close: () => folder.close(),
  };
};

const NO_LIFE = { not_before: null, not_after: null, renew_at: null };

/**
 * Stage with a standalone edge, which orders certificates from a test authority. The authority validates over the HTTP port opened below.
 */
const openStandalone = async (): Promise<CertificatesStage> => {
  const folder = await temporaryDirectory();
  let edge: StandaloneCertificates | null = null;
  let isIssued = false;
  let isForgotten = false;
  const held: (() => void)[] = [];
  const looked = new Map<string, AskedChallenge & { readonly token: string }>();
  const tell = async (key: AskedChallenge, response: ServerResponse): Promise<void> => {
    const found = await edge?.findChallenge(key);
    response.writeHead(found == null ? 404 : 200).end(found?.keyAuthorization);
  };
  const web = createServer((request, response) => {
    const host = request.headers.host ?? '';
    const key = { token: request.url?.split('/').at(-1) ?? '', host };
    looked.set(host, key);
    if (isIssued) void tell(key, response);
    else held.push(() => void tell(key, response));
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  const { port: httpPort } = web.address() as AddressInfo;
  const authority = await AcmeServer.start({ addressOf: () => ({ host: '127.0.0.1', httpPort }) });
  const ca_file = join(folder.path, 'ca.pem');
  await writeFile(ca_file, authority.ca);
  const sha256 = createHash('sha256').update('key').digest('hex');
  return {
    domain: DOMAIN,
    own: OWN,
    open: () => {
      const config = loadServerConfig({
        env: {},
        overrides: {
          server: { domain: DOMAIN },
          acme: { enabled: true, directory: authority.directory, ca_file, challenges: ['http-01'] },
          auth: { keys: [{ account: 'alice', sha256, domains: isForgotten ? [] : [OWN] }] },
        },
      });
      const opened = new StandaloneCertificates({
        config,
        dataDir: folder.path,
        isPassedThrough: () => false,
        clock: systemClock,
        random: Math.random,
        logger,
      });
      const start = async (): Promise<void> => {
        await opened.start();
        opened.ready();
      };
      edge = opened;
      return { edge: opened, start, stop: () => opened.stop() };
    },
    issue: () => {
      isIssued = true;
      for (const answer of held.splice(0)) answer();
    },
    renew: async (opened) => {
      const answer = await opened.renew?.(OWN);
      if (answer !== 'begun') throw new Error(`it is ${answer}`);
    },
    away: () => authority.fail({ on: 'all', times: Number.POSITIVE_INFINITY, answer: { kind: 'cut' } }),
    forget: () => {
      isForgotten = true;
    },
    challenge: () => {
      const key = looked.get(OWN);
      return key === undefined ? null : { key, token: key.token };
    },
    close: async () => {
      await authority.close();
      web.closeAllConnections();
      await new Promise((resolve) => web.close(resolve));
      await folder.close();
    },
  };
};

conformsToEdgeCertificates('certificates from a platform', openPlatform);
conformsToEdgeCertificates('certificates ordered by a standalone edge', openStandalone);
