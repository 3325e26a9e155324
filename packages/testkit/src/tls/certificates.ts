// Certificates that are made once and kept in the repository, with their keys.
import { readFileSync } from 'node:fs';

const fixture = (name: string): string => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8');

/** Self-signed for localhost, *.localhost and the loopback addresses. */
export const testCertificate = (): { cert: string; key: string } => ({
  cert: fixture('cert.pem'),
  key: fixture('key.pem'),
});

/** Another one, which is also for *.edge.test: what a renewal brings. */
export const renewedCertificate = (): { cert: string; key: string } => ({
  cert: fixture('renewed-cert.pem'),
  key: fixture('renewed-key.pem'),
});

/** One whose time is over since 2020. */
export const expiredCertificate = (): { cert: string; key: string } => ({
  cert: fixture('expired-cert.pem'),
  key: fixture('expired-key.pem'),
});

/** What a network that opens TLS shows instead of the server's: self-signed by another name. */
export const companyCertificate = (): { cert: string; key: string } => ({
  cert: fixture('company-cert.pem'),
  key: fixture('company-key.pem'),
});
