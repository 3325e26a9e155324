// Conformance suite for every ACME authority: the testkit's authority and Pebble. ACME client and certificate keeper are real, with a
// file store.
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger, systemClock } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import type { JWK } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AcmeClient, newAccountKey } from './client/acme-client.ts';
import { AcmeProblem } from './client/acme-problem.ts';
import { type ChallengeType, challengeRecord } from './client/challenge-answers.ts';
import { CertificateKeeper } from './keeper/certificate-keeper.ts';
import type { CertificateRecord } from './keeper/certificate-store.ts';
import { type ChallengeDoors, openChallengeDoors } from './keeper/challenge-doors.fixture.ts';
import { type ChallengeSolver, createStoredSolver } from './keeper/challenge-solver.ts';
import { FileCertificateStore } from './keeper/file-certificate-store.ts';
import { SealedKeys } from './keeper/sealed-keys.ts';

export interface AuthorityUnderTest {
  readonly directory: string;
  /** CA certificate (PEM) for the TLS certificate of the authority's own address. */
  readonly ca: string;
  readonly profile?: string;
  /** Returns the root certificate (PEM) of the certificates that the authority issues. */
  root(): Promise<string>;
  setTxt(name: string, value: string): Promise<void>;
  clearTxt(name: string): Promise<void>;
}

interface Ports {
  readonly httpPort: number;
  readonly tlsPort: number;
}

const PATIENCE = { timeoutMs: 45_000 };
const NONCE = /nonce/;

const againWithNonce = async <T>(call: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof AcmeProblem) || error.type !== 'badNonce') throw error;
    }
  }
};

export const acmeConformance = (begin: (ports: Ports) => Promise<AuthorityUnderTest>): void => {
  let authority: AuthorityUnderTest;
  let doors: ChallengeDoors;
  let folder: TemporaryDirectory;
  let store: FileCertificateStore;
  let keepers: CertificateKeeper[];
  let issued: CertificateRecord[];

  beforeEach(async () => {
    [keepers, issued] = [[], []];
    doors = await openChallengeDoors();
    folder = await temporaryDirectory();
    authority = await begin(doors);
    store = openStore();
  });

  afterEach(async () => {
    await Promise.all(keepers.map((keeper) => keeper.stop()));
    await doors.close();
    await folder.close();
  });

  const openStore = (): FileCertificateStore => {
    const opened = new FileCertificateStore(join(folder.path, 'certificates'), authority.directory);
    doors.store = opened;
    return opened;
  };

  const sealedKeys = (): SealedKeys => SealedKeys.open({ file: join(folder.path, 'certificate-key'), isGiven: false });

  const dns: ChallengeSolver = {
    type: 'dns-01',
    canAnswer: () => true,
    set: (answer) => authority.setTxt(challengeRecord(answer).name, challengeRecord(answer).value),
    clear: (answer) => authority.clearTxt(challengeRecord(answer).name),
  };

  const solver = (type: ChallengeType): ChallengeSolver =>
    type === 'dns-01' ? dns : createStoredSolver(type, { store, clock: systemClock });

  const startKeeper = (solvers: readonly ChallengeSolver[]): CertificateKeeper => {
    const keeper = new CertificateKeeper({
      client: new AcmeClient({ directory: authority.directory, ca: authority.ca, clock: systemClock }),
      store,
      keys: sealedKeys(),
      solvers,
      profile: authority.profile,
      email: 'operator@example.com',
      clock: systemClock,
      random: Math.random,
      logger: createLogger({ format: 'json', level: 'silent' }),
      listener: { onIssued: (record) => issued.push(record), onOrder: () => {}, onEnding: () => {} },
    });
    keepers.push(keeper);
    keeper.start();
    return keeper;
  };

  /**
   * Returns the record of an order. If half of the nonces are refused, six refusals in a row happen at times; the order is then retried
   * by hand, instead of after a minute.
   */
  const lookAt = async (id: string): Promise<CertificateRecord | null> => {
    const record = await store.get(id);
    // The error stays on record while the order is retried.
    if (!NONCE.test(record?.life.lastError ?? '')) expect(record?.life.lastError).toBeNull();
    else if ((record?.life.failures ?? 0) > 0) await keepers.at(-1)?.renew(id);
    return record;
  };

  const validFor = (id: string, count = 1): Promise<CertificateRecord> =>
    eventually(async () => {
      const record = await lookAt(id);
      expect(issued).toHaveLength(count);
      return record as CertificateRecord;
    }, PATIENCE);

  const checkIssued = async (record: CertificateRecord): Promise<void> => {
    const { certificate, names } = record;
    const chain = (certificate?.chain ?? '').match(/-----BEGIN[^-]+-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    const leaf = new X509Certificate(chain[0] ?? '');
    for (const name of names) expect(leaf.subjectAltName).toContain(`DNS:${name}`);
    const root = new X509Certificate(await authority.root());
    const parents = [...chain.slice(1).map((pem) => new X509Certificate(pem)), root];
    expect(parents.some((one) => leaf.checkIssued(one) && leaf.verify(one.publicKey))).toBe(true);
    expect(await sealedKeys().open(certificate?.key ?? '')).toContain('PRIVATE KEY');
  };

  for (const type of ['http-01', 'tls-alpn-01', 'dns-01'] as const) {
    it(`a requested name gets its certificate by ${type}`, async () => {
      const { id } = await store.want([`${type}.example.com`]);
      startKeeper([solver(type)]);
      await checkIssued(await validFor(id));
    });
  }

  it('a wildcard and its parent name get one certificate by dns-01', async () => {
    const { id } = await store.want(['wild.example.com', '*.wild.example.com']);
    startKeeper([dns]);
    await checkIssued(await validFor(id));
  });

  it('a renewal replaces the certificate, and an already replaced certificate is renewed without naming it as replaced', async () => {
    const { id } = await store.want(['renew.example.com']);
    const keeper = startKeeper([solver('http-01')]);
    const first = await validFor(id);
    const renewal = async (count: number): Promise<CertificateRecord> => {
      // The keeper refuses a renewal while it works on the certificate: it requests renewal information right after the certificate is
      // issued.
      await eventually(async () => expect(await keeper.renew(id)).toBe(true), PATIENCE);
      return validFor(id, count);
    };
    const second = await renewal(2);
    expect(second.certificate?.serial).not.toBe(first.certificate?.serial);
    // Simulates the loss of the second certificate: the authority knows that the first certificate has been replaced.
    const claim = await eventually(async () => {
      await store.change(id, systemClock.now(), (life) => ({ ...life, infoAt: 0 }));
      const found = await store.claim('test', systemClock.now(), 1000);
      expect(found).not.toBeNull();
      return found;
    });
    if (claim !== null) {
      await store.save(claim, { certificate: first.certificate });
      await store.release(claim);
    }
    const third = await renewal(3);
    expect(third.certificate?.serial).not.toBe(second.certificate?.serial);
  });

  it("the authority's renewal window is stored for a certificate", async () => {
    const { id } = await store.want(['info.example.com']);
    startKeeper([solver('http-01')]);
    await validFor(id);
    await eventually(async () => {
      const life = (await store.get(id))?.life;
      expect(life?.window?.end).toBeGreaterThan(life?.window?.start ?? 0);
      expect(life?.infoAt).toBeGreaterThan(systemClock.now());
    }, PATIENCE);
  });

  it('an order that was begun is finished after a restart, with its key', async () => {
    const { id } = await store.want(['restart.example.com']);
    let asked = false;
    const stuck: ChallengeSolver = {
      ...solver('http-01'),
      set: () => {
        asked = true;
        return new Promise(() => {});
      },
    };
    const keeper = startKeeper([stuck]);
    await eventually(async () => {
      await lookAt(id);
      expect(asked).toBe(true);
    }, PATIENCE);
    await keeper.stop();
    const begun = await store.get(id);
    store = openStore();
    startKeeper([solver('http-01')]);
    const record = await validFor(id);
    await checkIssued(record);
    expect(begun?.life.order?.url).toMatch(/^https:/);
    expect(record.certificate?.key).toBe(begun?.orderKey);
  });

  it('the same account key finds the same ACME account, a new key creates a new account', async () => {
    const client = new AcmeClient({ directory: authority.directory, ca: authority.ca, clock: systemClock });
    const key = await newAccountKey();
    const open = (by: AcmeClient, of: JWK) =>
      againWithNonce(() => by.openAccount(of, { email: 'operator@example.com' }));
    const { url } = await open(client, key);
    const again = new AcmeClient({ directory: authority.directory, ca: authority.ca, clock: systemClock });
    expect((await open(again, key)).url).toBe(url);
    expect((await open(again, await newAccountKey())).url).not.toBe(url);
  });

  it('stored keys are unreadable without the key file, and files are private to their owner', async () => {
    const { id } = await store.want(['sealed.example.com']);
    startKeeper([solver('http-01')]);
    await validFor(id);
    const files = readdirSync(folder.path, { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder.path, name),
    );
    for (const file of files) {
      const { mode } = statSync(file);
      expect(mode & 0o077).toBe(0);
      if (statSync(file).isFile()) expect(readFileSync(file, 'utf8')).not.toMatch(/PRIVATE KEY|"d":/);
    }
    expect(files.length).toBeGreaterThan(3);
  });
};
