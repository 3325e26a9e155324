// Pre-generated test certificates with keys, stored in the repository.
import { readFileSync } from 'node:fs';

const fixture = (name: string): string => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8');

/** Self-signed certificate for localhost, *.localhost and the loopback addresses. */
export const testCertificate = (): { cert: string; key: string } => ({
  cert: fixture('cert.pem'),
  key: fixture('key.pem'),
});

/** Replacement for testCertificate in tests of renewals. Also valid for *.edge.test. */
export const renewedCertificate = (): { cert: string; key: string } => ({
  cert: fixture('renewed-cert.pem'),
  key: fixture('renewed-key.pem'),
});

/** A certificate with an end date in 2020, so clients reject the certificate as expired. */
export const expiredCertificate = (): { cert: string; key: string } => ({
  cert: fixture('expired-cert.pem'),
  key: fixture('expired-key.pem'),
});

/** Self-signed certificate for a different name, as presented by a network that intercepts TLS. */
export const companyCertificate = (): { cert: string; key: string } => ({
  cert: fixture('company-cert.pem'),
  key: fixture('company-key.pem'),
});
