// Certificate authority for one test, with a separate root certificate. The serial numbers have the highest bit set.
import { randomBytes, webcrypto } from 'node:crypto';
import type * as x509 from '@peculiar/x509';

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;

type X509 = typeof x509;

/**
 * Loads the X.509 library on demand, so that tests without ACME, which import the same package index, do not pay for loading the library.
 */
export const loadX509 = async (): Promise<X509> => {
  await import('reflect-metadata');
  return import('@peculiar/x509');
};

export interface TestCertificate {
  /** Certificate and root certificate in PEM. */
  readonly chain: string;
  readonly serial: string;
  readonly renewalId: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

export class BadRequest extends Error {}

export class TestAuthority {
  readonly #x509: X509;
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #root: InstanceType<X509['X509Certificate']>;

  private constructor(library: X509, keys: webcrypto.CryptoKeyPair, root: InstanceType<X509['X509Certificate']>) {
    this.#x509 = library;
    this.#keys = keys;
    this.#root = root;
  }

  static async create(): Promise<TestAuthority> {
    const library = await loadX509();
    const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
    const root = await library.X509CertificateGenerator.createSelfSigned({
      name: 'CN=Test Authority',
      keys,
      signingAlgorithm: KEYS,
      notBefore: new Date(Date.now() - HOUR_MS),
      notAfter: new Date(Date.now() + 1000 * 24 * HOUR_MS),
      extensions: [
        new library.BasicConstraintsExtension(true, 0, true),
        await library.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new TestAuthority(library, keys, root);
  }

  get rootPem(): string {
    return this.#root.toString('pem');
  }

  /** Issues a certificate. Throws a BadRequest unless the signing request has exactly these names. */
  async issue(csr: Buffer, names: readonly string[], lifeMs: number): Promise<TestCertificate> {
    const library = this.#x509;
    const request = await this.#readRequest(csr, names);
    const serial = Buffer.concat([Buffer.from([0xa5]), randomBytes(15)]);
    const identifier = await library.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey);
    const notBefore = Math.floor((Date.now() - 1000) / 1000) * 1000;
    const notAfter = notBefore + lifeMs;
    const certificate = await library.X509CertificateGenerator.create({
      // The library writes the serial number as an ASN.1 INTEGER. The leading zero keeps the number positive.
      serialNumber: `00${serial.toString('hex')}`,
      issuer: this.#root.subject,
      notBefore: new Date(notBefore),
      notAfter: new Date(notAfter),
      publicKey: await request.publicKey.export(),
      signingKey: this.#keys.privateKey,
      signingAlgorithm: KEYS,
      extensions: [
        identifier,
        new library.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: 'dns' as const, value })),
          true,
        ),
        new library.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1']),
      ],
    });
    const keyId = Buffer.from(identifier.keyId ?? '', 'hex').toString('base64url');
    const der = Buffer.concat([Buffer.from([0]), serial]).toString('base64url');
    const chain = `${certificate.toString('pem')}\n${this.rootPem}\n`;
    return { chain, serial: serial.toString('hex'), renewalId: `${keyId}.${der}`, notBefore, notAfter };
  }

  async #readRequest(csr: Buffer, names: readonly string[]) {
    const library = this.#x509;
    try {
      const request = new library.Pkcs10CertificateRequest(csr);
      if (!(await request.verify())) throw new BadRequest('the request is not signed by its key');
      const found = request.extensions.find((one) => one instanceof library.SubjectAlternativeNameExtension);
      const asked = (found?.names.items ?? []).map(({ value }) => value).sort();
      if (JSON.stringify(asked) !== JSON.stringify([...names].sort())) throw new BadRequest('names of another order');
      return request;
    } catch (error) {
      throw error instanceof BadRequest ? error : new BadRequest('the request cannot be read');
    }
  }
}
