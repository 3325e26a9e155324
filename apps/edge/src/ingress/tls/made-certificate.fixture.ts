// Self-signed certificates for any names that a test needs. Used by tests only.
import { execFileSync } from 'node:child_process';

/** Creates a certificate for all given names. The first name is the subject. */
export const makeCertificate = (...names: readonly string[]): { cert: Buffer; key: Buffer } =>
  make(names, ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']);

/** Creates a certificate with a matching key that is too short for any handshake. */
export const makeShortKey = (): { cert: Buffer; key: Buffer } => make(['short.test'], ['-newkey', 'rsa:512']);

const make = (names: readonly string[], ofKey: readonly string[]): { cert: Buffer; key: Buffer } => {
  const made = execFileSync(
    'openssl',
    [
      ...['req', '-x509', ...ofKey, '-nodes', '-days', '2'],
      ...['-subj', `/CN=${names[0]}`, '-addext', `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`],
      ...['-keyout', '-', '-out', '-'],
    ],
    { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'latin1' },
  );
  const part = (kind: string): Buffer =>
    Buffer.from(made.match(new RegExp(`-----BEGIN ${kind}-----[^]*?-----END ${kind}-----\n`))?.[0] ?? '');
  return { cert: part('CERTIFICATE'), key: part('PRIVATE KEY') };
};
