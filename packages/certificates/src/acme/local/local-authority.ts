// A local certificate authority for names of this machine. Name constraints ensure that it cannot be abused for any other name.
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type Clock, SingleFlight, writeAtomicSync } from '@tunnel/runtime';
import { loadX509 } from '../client/x509.ts';

/** Lifetime of the local authority's own certificate, which people trust once. */
const LOCAL_CA_LIFE_MS = 10 * 365 * 86_400_000;
/** Lifetime of certificates issued by the local authority. They are replaced after half of this time. */
const LOCAL_LEAF_LIFE_MS = 90 * 86_400_000;

const KEYS = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
/** Loopback addresses, which only reach this machine (RFC 6761, RFC 1122, RFC 4291). */
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1'];
const NAME_CONSTRAINTS = '2.5.29.30';
/** Time by which certificates are backdated, because clocks of browsers and containers on the machine differ. */
const BACKDATED_MS = 3_600_000;

export interface CertificateAndKey {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export class LocalAuthority {
  /** File with the local authority's certificate, which browsers and systems must trust. */
  readonly file: string;
  readonly certificate: string;
  readonly #clock: Clock;
  readonly #key: webcrypto.CryptoKey;
  /** Key of all leaf certificates of this run, because generating a key takes longer than signing. */
  readonly #leafKeys = new SingleFlight(async () => makeLeafKeys(await loadX509()), { keepsResult: true });

  private constructor(file: string, certificate: string, key: webcrypto.CryptoKey, clock: Clock) {
    this.file = file;
    this.certificate = certificate;
    this.#key = key;
    this.#clock = clock;
  }

  /** Opens the authority or creates it once. Throws a fault that names an unusable file. */
  static async open(folder: string, clock: Clock): Promise<LocalAuthority> {
    const file = join(folder, 'ca.pem');
    const keyFile = join(folder, 'ca-key.pem');
    try {
      if (!existsSync(file)) await makeAuthority(folder, file, keyFile, clock);
      const certificate = readFileSync(file, 'utf8');
      const key = createPrivateKey(readFileSync(keyFile, 'utf8'));
      const read = new X509Certificate(certificate);
      if (!read.checkPrivateKey(key)) throw new Error(`${keyFile} is not the matching key`);
      if (Date.parse(read.validTo) <= clock.now())
        throw new Error('the certificate has expired; delete the folder to create a new authority');
      const der = key.export({ type: 'pkcs8', format: 'der' });
      const signing = await webcrypto.subtle.importKey('pkcs8', der, KEYS, false, ['sign']);
      return new LocalAuthority(file, certificate, signing, clock);
    } catch (error) {
      throw new Fault('LOCAL_CA_UNUSABLE', { file, reason: (error as Error).message }, { cause: error });
    }
  }

  /** Issues a certificate of the local authority for a name. `localhost` also covers the loopback addresses. */
  async issue(name: string): Promise<CertificateAndKey> {
    const x509 = await loadX509();
    const { publicKey, pem } = await this.#leafKeys.run();
    const authority = new x509.X509Certificate(this.certificate);
    const now = this.#clock.now();
    const addresses = name === 'localhost' ? LOOPBACK_ADDRESSES.map((value) => ({ type: 'ip' as const, value })) : [];
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: newSerial(),
      subject: subjectOf(name),
      issuer: authority.subject,
      publicKey,
      signingKey: this.#key,
      signingAlgorithm: KEYS,
      notBefore: new Date(now - BACKDATED_MS),
      notAfter: new Date(now + LOCAL_LEAF_LIFE_MS),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: name }, ...addresses]),
        await x509.AuthorityKeyIdentifierExtension.create(authority),
      ],
    });
    return { cert: Buffer.from(`${certificate.toString('pem')}\n`), key: Buffer.from(pem) };
  }
}

type X509 = Awaited<ReturnType<typeof loadX509>>;

interface LeafKeys {
  readonly publicKey: webcrypto.CryptoKey;
  readonly pem: string;
}

const makeLeafKeys = async (x509: X509): Promise<LeafKeys> => {
  const { publicKey, privateKey } = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  return { publicKey, pem: await pemOf(x509, privateKey) };
};

const makeAuthority = async (folder: string, file: string, keyFile: string, clock: Clock): Promise<void> => {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const now = clock.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    // A random suffix in the name distinguishes several trusted local authorities.
    name: `CN=Tunnel local authority ${randomBytes(3).toString('hex')}`,
    keys,
    signingAlgorithm: KEYS,
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + LOCAL_CA_LIFE_MS),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      new x509.Extension(NAME_CONSTRAINTS, true, loopbackNamesAlone()),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // The key is written first, because a certificate without key would be useless.
  writeAtomicSync(keyFile, await pemOf(x509, keys.privateKey), { flush: true, soleWriter: true });
  writeAtomicSync(file, `${certificate.toString('pem')}\n`, { mode: 0o644, flush: true, soleWriter: true });
};

const pemOf = async (x509: X509, key: webcrypto.CryptoKey): Promise<string> =>
  `${x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;

/** Returns a random serial number for a certificate, positive when encoded in DER. */
const newSerial = (): string => {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
};

/** A common name has at most 64 characters. Only the subject alternative name counts. */
const subjectOf = (name: string): string => `CN=${name.length <= 64 ? name : 'localhost'}`;

/** Returns the NameConstraints extension (RFC 5280, 4.2.1.10) in DER, limited to localhost and names below, 127.0.0.0/8 and ::1. */
const loopbackNamesAlone = (): Buffer => {
  const dns = der(0x82, Buffer.from('localhost'));
  const ipv4 = der(0x87, Buffer.from([127, 0, 0, 0, 255, 0, 0, 0]));
  const ipv6 = der(0x87, Buffer.concat([Buffer.alloc(15), Buffer.from([1]), Buffer.alloc(16, 0xff)]));
  const permitted = [dns, ipv4, ipv6].map((name) => der(0x30, name));
  return der(0x30, der(0xa0, Buffer.concat(permitted)));
};

/** Encodes a DER element with fewer than 128 bytes. */
const der = (tag: number, value: Buffer): Buffer => Buffer.concat([Buffer.from([tag, value.length]), value]);
