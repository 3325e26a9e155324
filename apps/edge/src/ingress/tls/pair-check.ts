// Checks that a certificate and a key match. A snapshot can contain ten thousand pairs, nearly all P-256 as ordered by the certificate
// keeper. For P-256 the public key is derived from the private key and compared, in a tenth of the time that OpenSSL needs to decode both.
import { createECDH, createPrivateKey, X509Certificate } from 'node:crypto';
import type { CertificatePair } from '@tunnel/http-shell';

/** Returns the problem, or null if certificate and key match. Creating a SecureContext instead would take ten times longer. */
export const findPairProblem = (pair: CertificatePair): string | null => {
  try {
    return (isUsualPair(pair) ?? isPairOfAnyKind(pair)) ? null : 'the private key does not match the certificate';
  } catch (error) {
    return (error as Error).message;
  }
};

const isPairOfAnyKind = ({ cert, key }: CertificatePair): boolean =>
  new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));

// ---- fast path for P-256 ----

/** PKCS #8 (RFC 5958) around ECPrivateKey (RFC 5915) with its public key: the constant bytes in front of the private scalar. */
const KEY_HEAD = Buffer.from('308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420', 'hex');
const KEY_BYTES = 138;
const SCALAR_BYTES = 32;
/** DER beginning of a P-256 public key (SubjectPublicKeyInfo, RFC 5480), up to the curve point. */
const PUBLIC_HEAD = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex');

/** Checks a P-256 pair. Returns null if the key has another type or cannot be parsed; the general check then decides. */
const isUsualPair = ({ cert, key }: CertificatePair): boolean | null => {
  const secret = derOf(key, 'PRIVATE KEY');
  if (secret?.length !== KEY_BYTES || !secret.subarray(0, KEY_HEAD.length).equals(KEY_HEAD)) return null;
  const leaf = derOf(cert, 'CERTIFICATE');
  const told = leaf === null ? null : publicKeyOf(leaf);
  if (told?.subarray(0, PUBLIC_HEAD.length).equals(PUBLIC_HEAD) !== true) return null;
  const curve = createECDH('prime256v1');
  // The public key stored next to the private key is ignored. OpenSSL would trust it, and every handshake would fail if it were wrong.
  curve.setPrivateKey(secret.subarray(KEY_HEAD.length, KEY_HEAD.length + SCALAR_BYTES));
  return curve.getPublicKey().equals(told.subarray(PUBLIC_HEAD.length));
};

/** Returns the first PEM block of the kind, which is the leaf certificate, or null if there is none. */
const derOf = (pem: Buffer, kind: string): Buffer | null => {
  const head = `-----BEGIN ${kind}-----`;
  const begin = pem.indexOf(head);
  const end = pem.indexOf(`-----END ${kind}-----`, begin);
  if (begin < 0 || end < 0) return null;
  return Buffer.from(pem.toString('latin1', begin + head.length, end), 'base64');
};

/** Returns the SubjectPublicKeyInfo of a certificate (RFC 5280, 4.1), or null if the data is truncated or no certificate. */
const publicKeyOf = (der: Buffer): Buffer | null => {
  const whole = elementAt(der, 0);
  if (whole?.end !== der.length) return null;
  const body = elementAt(der, whole.begin);
  if (body === null) return null;
  // Version, serial number, algorithm, issuer, validity, subject; the public key is the seventh field.
  let at = body.begin;
  for (const tag of [0xa0, 0x02, 0x30, 0x30, 0x30, 0x30]) {
    const field = der[at] === tag ? elementAt(der, at) : null;
    if (field === null) return null;
    at = field.end;
  }
  const field = elementAt(der, at);
  return field === null || field.end > body.end ? null : der.subarray(at, field.end);
};

/** Returns the bounds of the content of a DER element, or null if it is truncated. */
const elementAt = (der: Buffer, at: number): { readonly begin: number; readonly end: number } | null => {
  const first = der[at + 1] ?? 0;
  const more = first < 0x80 ? 0 : first - 0x80;
  const begin = at + 2 + more;
  if (more > 3 || begin > der.length) return null;
  const length = more === 0 ? first : der.readUIntBE(at + 2, more);
  return begin + length > der.length ? null : { begin, end: begin + length };
};
