// A platform that orders certificates from an authority on loopback. The authority validates challenges through responses from the store,
// as an edge would serve them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { CertificateStore } from '@tunnel/certificates/acme';
import { loadServerConfig } from '@tunnel/config/server';
import { type Clock, createLogger, Secret, systemClock } from '@tunnel/runtime';
import {
  AcmeServer,
  type AcmeServerOptions,
  eventually,
  FastClock,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { expect } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import { createPlatform, type Platform } from '../../platform.ts';
import { upsertPlans } from '../plans/plans.ts';
import type { KeptCertificate } from './certificate-rows.ts';
import { PlatformCertificates } from './platform-certificates.ts';
import { PostgresCertificateStore } from './postgres-certificate-store.ts';

export const DOMAIN = 'tunnels.test';

export interface CertificatesFixture {
  readonly database: TestDatabase;
  readonly authority: AcmeServer;
  readonly folder: TemporaryDirectory;
  readonly store: PostgresCertificateStore;
  readonly lines: string[];
  /** Starts only the certificate part of a platform, because the other parts would query the database all the time. */
  start(overrides?: Overrides): PlatformCertificates;
  startPlatform(overrides?: Overrides): Promise<Platform>;
  /** Returns the settings in their TOML form, for a separate process. */
  settings(overrides?: Overrides): Record<string, unknown>;
  addUser(email?: string): Promise<string>;
  addDomain(userId: string, name: string, state?: 'pending' | 'verified' | 'lapsed'): Promise<void>;
  reserve(userId: string, label: string): Promise<void>;
  of(name: string): Promise<KeptCertificate | undefined>;
  issued(name: string): Promise<KeptCertificate>;
  close(): Promise<void>;
}

export interface Overrides {
  readonly acme?: Record<string, unknown>;
  readonly dns?: Record<string, unknown>;
  readonly platform?: Record<string, unknown>;
  readonly policy?: Record<string, unknown>;
  readonly clock?: Clock;
  readonly dataDir?: string;
  /** URL of the stack's own edge. Returns null while the edge is not open yet. */
  readonly edgeUrl?: () => string | null;
}

/** Servers that the authority contacts: HTTP and TLS on loopback, responding from a store as an edge does. */
export interface Doors {
  readonly httpPort: number;
  readonly tlsPort: number;
  store: CertificateStore | null;
  close(): Promise<void>;
}

/**
 * Clock that runs 20 times as fast: the keeper looks for work every five seconds, and polls an order first after half a second. `aheadMs`
 * simulates a machine with a wrong time.
 */
export const fastClock = (aheadMs = 0): Clock => new FastClock(20, Date.now() + aheadMs);

export const openCertificates = async (
  doors: Doors,
  options: Partial<AcmeServerOptions> = {},
): Promise<CertificatesFixture> => {
  const database = await createTestDatabase();
  await upsertPlans(database.db, loadServerConfig({ env: {} }).platform.plans);
  const folder = await temporaryDirectory();
  const authority = await AcmeServer.start({ addressOf: () => ({ host: '127.0.0.1', ...doors }), ...options });
  const store = new PostgresCertificateStore({ db: database.db, directory: authority.directory });
  doors.store = store;
  const ca_file = join(folder.path, 'ca.pem');
  writeFileSync(ca_file, authority.ca);
  const lines: string[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  const logger = createLogger({ format: 'json', stream });
  const running: { stop(): Promise<void> }[] = [];
  const settings: CertificatesFixture['settings'] = ({ acme, dns, platform, policy } = {}) => ({
    server: { domain: DOMAIN },
    acme: { enabled: true, directory: authority.directory, ca_file, ...acme },
    dns: { host: '127.0.0.1', port: 0, ...dns },
    platform: { port: 0, ...platform },
    ...(policy === undefined ? {} : { policy }),
  });
  const of: CertificatesFixture['of'] = async (name) =>
    (await store.page(null, 1000)).find(({ names }) => names.join() === name);
  return {
    database,
    authority,
    folder,
    store,
    lines,
    settings,
    of,
    start: (overrides = {}) => {
      const { clock = fastClock(), dataDir = folder.path } = overrides;
      const config = loadServerConfig({ env: {}, overrides: settings(overrides) });
      const given = { config, db: database.db, dataDir, clock, logger, wakeMailer: () => {} };
      const certificates = new PlatformCertificates(given);
      running.push(certificates);
      certificates.start();
      return certificates;
    },
    startPlatform: async (overrides = {}) => {
      const { clock = systemClock, dataDir = folder.path } = overrides;
      const config = loadServerConfig({ env: {}, overrides: settings(overrides) });
      const adminToken = new Secret('the-token-of-the-operator');
      const given = { clock, logger, version: '1', adminToken, databaseUrl: database.url, dataDir };
      const { edgeUrl } = overrides;
      const edge = { credential: new Secret('the-credential-of-the-edge'), callsAtPort: 0 };
      const localEdge = edgeUrl === undefined ? {} : { localEdge: { ...edge, url: edgeUrl } };
      const platform = createPlatform(config, { ...given, ...localEdge });
      running.push(platform);
      await platform.start();
      return platform;
    },
    addUser: async (email = `${Math.random()}@example.com`) => {
      const values = { email, plan: 'free', password_hash: null, email_verified_at: new Date() };
      const made = database.db.insertInto('users').values(values).returning('id');
      return (await made.executeTakeFirstOrThrow()).id;
    },
    addDomain: async (user_id, name, state = 'verified') => {
      const values = { user_id, name, wildcard: name.startsWith('*.'), token: 'token234', state, since: new Date() };
      await database.db.insertInto('own_domains').values(values).execute();
    },
    reserve: async (user_id, label) => {
      await database.db.insertInto('names').values({ kind: 'subdomain', label, user_id, state: 'reserved' }).execute();
    },
    issued: (name) =>
      eventually(
        async () => {
          const found = await of(name);
          expect(found?.certificate?.serial, found?.life.lastError ?? 'nothing was ordered').toBeDefined();
          return found as KeptCertificate;
        },
        { timeoutMs: 45_000 },
      ),
    close: async () => {
      for (const part of running.reverse()) await part.stop();
      await authority.close();
      await doors.close();
      await database.close();
      await folder.close();
    },
  };
};
