// Certificates for whatever name a test needs, signed by themselves. Used by tests only.
import { execFileSync } from 'node:child_process';

/** Of all these names; the first is its subject. */
export const makeCertificate = (...names: readonly string[]): { cert: Buffer; key: Buffer } =>
  make(names, ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']);

/** One that fits its key, and that no handshake is done with. */
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
