// Responses to challenges: text at a path, a certificate in a handshake, a DNS record (RFC 8555, 8.3 and 8.4; RFC 8737).
import { createHash, webcrypto } from 'node:crypto';
import { loadX509 } from './x509.ts';

export const CHALLENGE_TYPES = ['http-01', 'tls-alpn-01', 'dns-01'] as const;
export type ChallengeType = (typeof CHALLENGE_TYPES)[number];

export const isChallengeType = (text: string): text is ChallengeType =>
  (CHALLENGE_TYPES as readonly string[]).includes(text);

/** Response to an ACME challenge, served until it is cleared. */
export interface ChallengeAnswer {
  readonly type: ChallengeType;
  /** Host name to be validated, without `*.`. */
  readonly name: string;
  readonly token: string;
  /** Body at `/.well-known/acme-challenge/<token>`. The other challenge types derive their values from it. */
  readonly keyAuthorization: string;
}

const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31';
const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 24 * 3_600_000;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Returns the TXT record for a dns-01 challenge: name and value. */
export const challengeRecord = ({ name, keyAuthorization }: ChallengeAnswer): { name: string; value: string } => ({
  name: `_acme-challenge.${name}`,
  value: digest(keyAuthorization).toString('base64url'),
});

/** Certificate for a handshake with ALPN `acme-tls/1` for the name. `now` is in milliseconds. */
export const challengeCertificate = async (
  { name, keyAuthorization }: ChallengeAnswer,
  now: number,
): Promise<{ cert: string; key: string }> => {
  const { Extension, PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } = await loadX509();
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  // Value of the challenge certificate's extension: an OCTET STRING of 32 bytes in DER.
  const value = Buffer.concat([Buffer.from([0x04, 0x20]), digest(keyAuthorization)]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name.length <= 64 ? name : 'challenge'}`,
    keys,
    signingAlgorithm: KEYS,
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + DAY_MS),
    extensions: [
      new SubjectAlternativeNameExtension([{ type: 'dns', value: name }]),
      new Extension(ACME_IDENTIFIER, true, value),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: certificate.toString('pem'), key: PemConverter.encode(pkcs8, 'PRIVATE KEY') };
};
