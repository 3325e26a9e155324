// Startup cost of 1,000 local copies of certificates: an edge opens its ports only after reading the copies.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger, SealedFiles, Secret, sha256Hex, systemClock } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CertificateStore } from '../../ingress/tls/certificate-store.ts';
import { makeCertificate } from '../../ingress/tls/made-certificate.fixture.ts';
import { PlatformCertificates } from './platform-certificates.ts';

const COPIES = 1000;
let folder: TemporaryDirectory;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

it('loading 1,000 copies of certificates takes less than a second of CPU time, and every copy is served', async () => {
  const credential = new Secret('credential');
  const { cert, key } = makeCertificate('a.example');
  const sealed = new SealedFiles(credential, 'tunnel copies of certificates');
  const copies = { folder: join(folder.path, 'certificates'), credential };
  mkdirSync(copies.folder);
  const write = (index: number): Promise<void> => {
    const id = `crt_${index}`;
    return sealed.write(join(copies.folder, `${sha256Hex(id).slice(0, 32)}.jwe`), {
      id,
      names: [`n${index}.example`],
      is_operators: false,
      state: 'valid',
      issuer: 'Test CA',
      not_before: 1,
      not_after: 2,
      renew_at: null,
      last_error: null,
      pair: { chain: cert.toString().repeat(3), key: key.toString() },
    });
  };
  await Promise.all(Array.from({ length: COPIES }, (_, index) => write(index)));
  const logger = createLogger({ level: 'silent', format: 'json' });
  const store = new CertificateStore({ terms: null as never, clock: systemClock, domain: 'edge.test' });
  const edge = new PlatformCertificates({ clock: systemClock, logger, link: null as never, copies });
  edge.follow({ onPair: (_id, names, pair, isTried) => store.set(names, pair, isTried), onGone: () => {} });
  const before = process.cpuUsage();
  await edge.start();
  const { user, system } = process.cpuUsage(before);
  expect(store.size).toBe(COPIES);
  expect((user + system) / 1000).toBeLessThan(1000);
  await edge.stop();
});
