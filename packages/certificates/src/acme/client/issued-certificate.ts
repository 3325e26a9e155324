// Certificate keys and requests, and the validation of issued certificates against the request.
import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto';
import { Fault } from '@tunnel/errors';
import { loadX509 } from './x509.ts';

/** Maximum number of certificates in a chain. */
const CHAIN_MAX_CERTIFICATES = 10;

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** New private key as PKCS #8 in PEM. Every order gets a separate key. */
export const newCertificateKey = async (): Promise<string> => {
  const { privateKey } = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', privateKey));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString();
};

/** Creates a certificate signing request for these names, in DER. */
export const certificateRequest = async (names: readonly string[], keyPem: string): Promise<Buffer> => {
  const { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } = await loadX509();
  const { subtle } = webcrypto;
  const key = createPrivateKey(keyPem);
  const privateKey = await subtle.importKey('pkcs8', key.export({ format: 'der', type: 'pkcs8' }), KEYS, true, [
    'sign',
  ]);
  const { d: _private, ...jwk } = key.export({ format: 'jwk' });
  const publicKey = await subtle.importKey('jwk', jwk, KEYS, true, ['verify']);
  const request = await Pkcs10CertificateRequestGenerator.create({
    keys: { privateKey, publicKey },
    signingAlgorithm: KEYS,
    // Names are only in the extension: a common name has at most 64 characters, and modern clients ignore it.
    extensions: [new SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value })))],
  });
  return Buffer.from(request.rawData);
};

export interface IssuedCertificate {
  /** Issued certificate with its chain in PEM, leaf first. */
  readonly chain: string;
  readonly issuer: string;
  readonly serial: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Identifies the certificate in renewal information and `replaces`. Null if the certificate does not name the authority's key. */
  readonly renewalId: string | null;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----/g;

/** Throws a fault if the certificate does not match the names and key. Then the previous certificate stays in use. */
export const readIssued = async (pem: string, names: readonly string[], keyPem: string): Promise<IssuedCertificate> => {
  const found = pem.match(CERTIFICATE) ?? [];
  const [own] = found;
  if (own === undefined || found.length > CHAIN_MAX_CERTIFICATES) throw unfit(`${found.length} certificates`);
  let leaf: X509Certificate;
  try {
    for (const one of found) new X509Certificate(one);
    leaf = new X509Certificate(own);
  } catch (error) {
    throw unfit(`an unreadable certificate (${(error as Error).message})`);
  }
  if (!leaf.checkPrivateKey(createPrivateKey(keyPem))) throw unfit('a certificate for another key');
  const covered = namesOf(leaf);
  const missing = names.filter((name) => !covered.includes(name));
  if (missing.length > 0) throw unfit(`a certificate that does not cover ${missing.join(', ')}`);
  return {
    chain: `${found.join('\n')}\n`,
    issuer: issuerOf(leaf),
    serial: leaf.serialNumber.toLowerCase(),
    notBefore: Date.parse(leaf.validFrom),
    notAfter: Date.parse(leaf.validTo),
    renewalId: await renewalIdOf(leaf),
  };
};

const unfit = (reason: string): Fault => new Fault('ACME_CERTIFICATE', { reason });

const namesOf = (leaf: X509Certificate): string[] =>
  (leaf.subjectAltName ?? '')
    .split(', ')
    .flatMap((part) => (part.startsWith('DNS:') ? [part.slice(4).toLowerCase()] : []));

const issuerOf = (leaf: X509Certificate): string => {
  const part = (key: string): string | undefined => new RegExp(`^${key}=(.+)$`, 'm').exec(leaf.issuer)?.[1];
  return part('CN') ?? part('O') ?? leaf.issuer;
};

/** RFC 9773, 4.1: key identifier of the authority and serial as in DER, with a zero byte before a high bit. */
const renewalIdOf = async (leaf: X509Certificate): Promise<string | null> => {
  const { AuthorityKeyIdentifierExtension, X509Certificate: Parsed } = await loadX509();
  const keyId = new Parsed(leaf.raw).getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  return keyId === undefined ? null : renewalId(keyId, leaf.serialNumber);
};

/** Computes a certificate's renewal id (RFC 9773) from key identifier and serial, both in hex. */
export const renewalId = (keyId: string, serial: string): string => {
  const digits = serial.replace(/^(?:00)+(?=..)/, '');
  const even = digits.length % 2 === 0 ? digits : `0${digits}`;
  const bytes = Buffer.from(even, 'hex');
  const der = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes;
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${der.toString('base64url')}`;
};
