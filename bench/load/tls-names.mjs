// The https port of an edge with a certificate for each of 1,000 names, with the HTTP ingress behind it but without a tunnel. Bundled by
// paths/tls.mjs.
// Usage: node tls-names.mjs PORT_FILE CERTIFICATE KEY
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { ConnectionGate, TlsTerms } from '@tunnel/http-shell';
import { Admission } from '@tunnel/rules/admission';
import { InFlight } from '@tunnel/rules/rate';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { HttpIngress } from '../../apps/edge/src/ingress/http/http-ingress.ts';
import { HttpsPort } from '../../apps/edge/src/ingress/http/https-port.ts';
import { CertificateStore } from '../../apps/edge/src/ingress/tls/certificate-store.ts';
import { Balancer } from '../../apps/edge/src/routing/balancer.ts';
import { HttpRouter } from '../../apps/edge/src/routing/http-router.ts';
import { TLS_NAMES } from '../scenarios/tls-new-connections.mjs';

const [, , portFile, certificate, keyFile] = process.argv;
const clock = systemClock;
const logger = createLogger({ level: 'silent', format: 'json' });
const report = (error) => {
  throw error;
};

const certificates = new CertificateStore({
  terms: new TlsTerms(new Secret('of one run of the bench'), clock),
  clock,
  domain: 'localhost',
});
for (let n = 0; n < TLS_NAMES; n += 1) {
  // Each name gets separately allocated buffers, as if each had a different certificate.
  const problem = certificates.set([`n${n}.localhost`], {
    cert: readFileSync(certificate),
    key: readFileSync(keyFile),
  });
  if (problem !== null) throw new Error(problem);
}

const gate = new ConnectionGate({
  admission: new Admission({ limits: { visitors: 20_000, control: 100, api: 100 }, perNetwork: 20_000 }),
  trustedProxies: [],
  clock,
  logger,
});
const router = new HttpRouter({
  domain: 'localhost',
  tunnels: { at: () => undefined },
  names: { isHeld: () => false },
  trustedProxies: [],
  redirectPort: () => null,
  takesClients: false,
});
const ingress = new HttpIngress({
  clock,
  router,
  gate,
  report,
  balancer: new Balancer({ counts: new InFlight({ perKey: 1000 }), random: Math.random }),
  isListed: () => false,
  captures: { begin: () => null, answered: () => {} },
  headTimeoutMs: 15_000,
  firstByteTimeoutMs: 60_000,
});
ingress.start();
const on = { host: '127.0.0.1', port: 0, key: 'the port of the bench' };
const port = new HttpsPort({ on, certificates, passthrough: null, ingress, gate });
await port.start();
// The rename makes the file appear completely or not at all.
writeFileSync(`${portFile}.part`, String(port.address.port));
renameSync(`${portFile}.part`, portFile);
