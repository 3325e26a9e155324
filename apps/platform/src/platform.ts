// The composition root of the platform: makes every part, joins them, starts and stops them in order.

import { type ServerConfig } from '@tunnel/config/server';
import { BILLING_WEBHOOK_PATH, EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { createProcessGate, createStackGate, type ProcessGate } from '@tunnel/http-shell';
import { platformLabelOf } from '@tunnel/rules/names';
import { type Clock, Lifecycle, type Logger, type Secret } from '@tunnel/runtime';
import { sql } from 'kysely';
import { Billing, type ProcessorAccess } from './billing/billing.ts';
import { Database } from './db/database.ts';
import { notReady } from './db/database-away.ts';
import { DatabaseWatch } from './db/database-watch.ts';
import { type MasterKey, masterKeySource } from './db/master-key.ts';
import { migratePatiently } from './db/migrate.ts';
import type { LocalEdge } from './edge-calls/call-edge.ts';
import { createEdgeCalls } from './edge-calls/edge-calls.ts';
import { ApiAdmission, type TokenAccounts } from './http/admission/api-admission.ts';
import { readDashboard } from './http/routes/pages/dashboard-routes.ts';
import { readStaticFiles } from './http/routes/pages/static-files.ts';
import { addPlatformRoutes } from './http/routes/platform-routes.ts';
import { HttpServer } from './http/server/http-server.ts';
import { createPlatformApp } from './http/server/platform-app.ts';
import { PlatformTls } from './http/server/platform-tls.ts';
import type { PlatformApp } from './http/shared/platform-env.ts';
import { cleanUp } from './jobs/clean-up.ts';
import { closeLostEntries } from './jobs/close-lost-entries.ts';
import { deleteAccounts } from './jobs/delete-accounts.ts';
import { endNames } from './jobs/end-names.ts';
import { enforceCaps } from './jobs/enforce-caps.ts';
import { enforceEntitlements } from './jobs/enforce-entitlements.ts';
import { Jobs } from './jobs/jobs.ts';
import { followTestClocks, resyncBilling } from './jobs/resync-billing.ts';
import { sendRequested } from './jobs/send-requested-mails.ts';
import { verifyDomains } from './jobs/verify-domains.ts';
import { MailSender } from './mail/mail-sender.ts';
import { createMailTransport, type MailNotice } from './mail/mail-transport.ts';
import { FirstAccountLink } from './services/accounts/first-account.ts';
import { AccessTokens } from './services/auth/access-tokens.ts';
import { prepareSigningKeys } from './services/auth/signing-key-store.ts';
import { SigningKeys } from './services/auth/signing-keys.ts';
import type { BillingContext } from './services/billing/billing-account.ts';
import type { KeptCertificates } from './services/certificates/edge-certificates.ts';
import { PlatformCertificates } from './services/certificates/platform-certificates.ts';
import type { DomainNews } from './services/domains/change-domain.ts';
import { type DomainDns, openDomainDns } from './services/domains/domain-dns.ts';
import { domainSettings } from './services/domains/domain-settings.ts';
import { DomainVerifier } from './services/domains/domain-verifier.ts';
import { ChangeFeed } from './services/edges/change-feed.ts';
import { encryptApiSecrets, ensureLocalEdge, localEdgeName } from './services/edges/credentials.ts';
import { KeyUses } from './services/keys/verify-key.ts';
import { createClientDocuments } from './services/oauth/client-documents.ts';
import { upsertPlans } from './services/plans/plans.ts';

/** Connections of all callers at once; far below the descriptors of a process. */
const CONNECTIONS_MAX = 4096;
/**
 * Connections of one process for calls of edges alone, so that these never wait for API calls. One of them listens for changes.
 * @limit operator: Database connections per platform process, for edges | further calls wait
 */
const DATABASE_LINK_CONNECTIONS = 8;

export interface PlatformDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  /** postgres://…; the server may be away at the start. */
  readonly databaseUrl: Secret;
  readonly dataDir: string;
  /** Of the operator, who reads the metrics with it. */
  readonly adminToken: Secret;
  /** The edge of the same stack; absent: there is none. */
  readonly localEdge?: StackEdge;
  /** The payment processor's stand-in, which runs elsewhere; needed when the configuration says `simulator`. */
  readonly simulator?: ProcessorAccess;
  /** Where the dashboard was built to; absent, or empty: /app/ says that there is none. */
  readonly dashboardFolder?: string;
  /** Where the viewer of the API reference lies; absent, or empty: /docs leads to the bare document. */
  readonly viewerFolder?: string;
  /** A mail went into a file: for the console. */
  readonly onMail?: (notice: MailNotice) => void;
}

/** What platform and edge of one stack know of each other. */
export interface StackEdge extends Pick<LocalEdge, 'url'> {
  /** By which it shows itself, minted by the stack for as long as that runs. */
  readonly credential: Secret;
  /** Of the loopback listener where it calls; 0: any free one. */
  readonly callsAtPort: number;
  /** By which it vouches for its visitors, where it answers for the platform's host; absent: it does not. */
  readonly visitorSecret?: Secret;
}

export interface Platform {
  /**
   * Rejects with one fault that names the port and its key when the port is taken, and when the database answers but cannot be
   * used; nothing then stays open. One that is away is waited for: until it appears, /health is 200 and all else 503.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Only while it runs. */
  readonly address: { readonly host: string; readonly port: number; readonly tls: boolean };
  /** Where the edge of the same stack calls. Only while it runs; null: there is no such edge. */
  readonly stackAddress: { readonly host: string; readonly port: number } | null;
  /** host:port of the responder for dns-01; null: there is none, or its port could not be opened. Only while it runs. */
  readonly dnsAddress: string | null;
  /** Settles when certificates are kept here, and that responder answers, or they cannot be for now. At once where there are none to keep. */
  certificatesReady(): Promise<void>;
  /** Where a payment processor on this machine sends its webhooks; null: it does not listen yet, or not any more. */
  readonly webhookUrl: string | null;
}

/** Addresses to listen on that nobody can be called at. */
const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const LOOPBACK = '127.0.0.1';
const LOOPBACKS = ['127.0.0.0/8', '::1'];

/** What all parts together may take to stop. */
const STOP_MS = 10_000;

export const createPlatform = (config: ServerConfig, deps: PlatformDeps): Platform =>
  new ComposedPlatform(config, deps);

class ComposedPlatform implements Platform {
  readonly #config: ServerConfig;
  readonly #options: PlatformDeps;
  readonly #database: Database;
  /** To PostgreSQL itself, where the other one leads to a pooler; null: there is none. */
  readonly #direct: Database | null;
  /** For edges alone: they never wait for calls of the API. */
  readonly #linkDatabase: Database;
  readonly #watch: DatabaseWatch;
  readonly #keyUses: KeyUses;
  readonly #changes: ChangeFeed;
  readonly #billing: Billing;
  readonly #certificates: PlatformCertificates;
  readonly #domainVerifier: DomainVerifier;
  readonly #jobs: Jobs;
  readonly #mail: MailSender;
  readonly #firstAccount: FirstAccountLink;
  readonly #app: PlatformApp;
  readonly #connections: ProcessGate;
  /** null: in clear, for this machine or behind a proxy. */
  readonly #tls: PlatformTls | null;
  readonly #server: HttpServer;
  /** For the edge of the same stack: `[platform] host` and rules of the public port do not concern it. */
  readonly #stackServer: HttpServer | null;
  readonly #life: Lifecycle;
  #masterKey: MasterKey | undefined;

  constructor(config: ServerConfig, options: PlatformDeps) {
    const { clock, logger } = options;
    this.#config = config;
    this.#options = options;
    this.#database = new Database({ url: options.databaseUrl, logger });
    const connections = DATABASE_LINK_CONNECTIONS;
    this.#linkDatabase = new Database({ url: options.databaseUrl, logger, connections });
    const { direct_url: directUrl } = config.database;
    this.#direct = directUrl.reveal() === '' ? null : new Database({ url: directUrl, logger, connections: 1 });
    const { db } = this.#database;
    this.#keyUses = new KeyUses({ db, clock, logger });
    const { pool } = this.#direct ?? this.#linkDatabase;
    this.#changes = new ChangeFeed({ db: this.#linkDatabase.db, pool, clock, logger });
    this.#billing = this.#makeBilling();
    this.#certificates = this.#makeCertificates();
    this.#domainVerifier = this.#makeDomainLooks();
    const jobs = [
      closeLostEntries,
      enforceCaps({ publicUrl: config.platform.public_url }),
      enforceEntitlements,
      cleanUp(config.platform.retention),
      sendRequested({ publicUrl: config.platform.public_url, wakeMailer: () => this.#mail.wake() }),
      resyncBilling(this.#billingContext()),
      followTestClocks(this.#billingContext()),
      deleteAccounts(this.#billingContext()),
      endNames(config.names),
      verifyDomains(this.#domainVerifier),
    ];
    this.#jobs = new Jobs({ db, clock, logger }, jobs);
    this.#mail = this.#makeMail();
    this.#firstAccount = new FirstAccountLink({ dataDir: options.dataDir, settings: config.platform, logger });
    this.#watch = this.#makeWatch();
    const { app, admission } = this.#makeApp();
    this.#app = app;
    const { host, port } = config.platform;
    this.#connections = createProcessGate(config.limits, {
      takes: 'callers',
      callersMax: CONNECTIONS_MAX,
      clock,
      logger,
      // Visitors of the edge in front count there, and with each request: its connections are no address's.
      trustedProxies: [...config.platform.trusted_proxies, ...(options.localEdge?.visitorSecret ? LOOPBACKS : [])],
    });
    this.#tls = config.platform.tls ? this.#makeTls() : null;
    const tls = this.#tls === null ? {} : { tls: this.#tls };
    const { gate } = this.#connections;
    this.#server = new HttpServer({ host, port, app, gate, admission, ...tls, clock, logger });
    this.#stackServer = this.#makeStackServer();
    this.#life = this.#makeLife();
  }

  get address(): Platform['address'] {
    return { ...this.#server.address, tls: this.#tls !== null };
  }

  get dnsAddress(): Platform['dnsAddress'] {
    return this.#certificates.dnsAddress;
  }

  certificatesReady(): Promise<void> {
    return this.#certificates.begun;
  }

  get webhookUrl(): string | null {
    if (!this.#server.isOpen) return null;
    const { host: listens, port } = this.#server.address;
    const host = EVERYWHERE[listens] ?? listens;
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}${BILLING_WEBHOOK_PATH}`;
  }

  start(): Promise<void> {
    this.#connections.announce();
    // One of before may be void: it is written again when the database has said so.
    this.#firstAccount.remove();
    return this.#life.start();
  }

  stop(): Promise<void> {
    return this.#life.stop({ deadlineMs: STOP_MS });
  }

  get stackAddress(): Platform['stackAddress'] {
    return this.#stackServer?.address ?? null;
  }

  #makeStackServer(): HttpServer | null {
    const { clock, logger, localEdge } = this.#options;
    if (localEdge === undefined) return null;
    const on = { host: LOOPBACK, port: localEdge.callsAtPort };
    return new HttpServer({
      ...on,
      app: this.#app,
      onlyBelow: EDGE_LINK_PATH,
      gate: createStackGate({ clock, logger }),
      clock,
      logger,
    });
  }

  #makeBilling(): Billing {
    const { clock, logger, simulator } = this.#options;
    const given = simulator === undefined ? {} : { simulator };
    return new Billing({ settings: this.#config.platform, db: this.#database.db, clock, logger, ...given });
  }

  #billingContext(): BillingContext {
    const { clock, logger } = this.#options;
    const { processor, locks, metering } = this.#billing;
    return { db: this.#database.db, clock, logger, settings: this.#config.platform, processor, locks, metering };
  }

  #makeCertificates(): PlatformCertificates {
    const { clock, logger, dataDir, localEdge } = this.#options;
    const { db } = this.#database;
    return new PlatformCertificates({
      config: this.#config,
      db,
      dataDir,
      clock,
      logger,
      wakeMailer: () => this.#mail.wake(),
      ...(localEdge === undefined ? {} : { isEdgeOpen: () => localEdge.url() !== null }),
    });
  }

  #makeDomainLooks(): DomainVerifier {
    const { clock, logger } = this.#options;
    const settings = domainSettings(this.#config);
    const onNews = (news: DomainNews): void => this.#domainNews(news);
    const openDns = (): Promise<DomainDns> => openDomainDns(settings, clock);
    return new DomainVerifier({ db: this.#database.db, clock, logger, settings, openDns, onNews });
  }

  #domainNews({ mails, certificates }: DomainNews): void {
    if (certificates) this.#certificates.wanted();
    if (mails) this.#mail.wake();
  }

  #makeMail(): MailSender {
    const { clock, logger, dataDir, onMail } = this.#options;
    const settings = this.#config.platform.mail;
    const transport = createMailTransport({ settings, dataDir, ...(onMail === undefined ? {} : { onMail }) });
    return new MailSender({ db: this.#database.db, clock, logger, transport });
  }

  #makeWatch(): DatabaseWatch {
    const { db } = this.#database;
    const { clock, logger, localEdge, dataDir, databaseUrl: url } = this.#options;
    const settings = this.#config.platform;
    return new DatabaseWatch({
      prepare: async () => {
        const applied = await migratePatiently({ url, logger });
        if (applied.length > 0) logger.info({ migrations: applied }, 'the database schema is up to date');
        this.#masterKey = await prepareSigningKeys(db, masterKeySource(settings, dataDir), clock.now());
        const { file, isOpenToAll } = this.#masterKey;
        if (isOpenToAll) logger.warn({ file }, 'every user of this machine can read the key file');
        await encryptApiSecrets(db, this.#masterKey);
        await upsertPlans(db, settings.plans);
        await this.#firstAccount.prepare(db, this.#masterKey, clock.now());
        if (localEdge) await ensureLocalEdge(db, localEdgeName(dataDir), localEdge.credential);
        if (this.#database.isPooled) await this.#tellOfPooler();
      },
      onPrepared: () => this.#startBackground(),
      probe: async () => {
        await sql`select 1`.execute(db);
      },
      clock,
      logger,
    });
  }

  /** Only the role can limit statements that are no part of a transaction. */
  async #tellOfPooler(): Promise<void> {
    const { logger } = this.#options;
    const { rows } = await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.execute(
      this.#database.db,
    );
    if (rows[0]?.limit !== '0') logger.info({}, 'the database is behind a pooler');
    else logger.warn({}, 'the database is behind a pooler, and its role has no statement_timeout: docs/run.md');
  }

  /** What works with the tables by itself, and so waits for them. */
  #startBackground(): void {
    this.#changes.start();
    this.#keyUses.start();
    this.#jobs.start();
    this.#mail.start();
    this.#billing.metering.start();
    this.#certificates.start();
    this.#tls?.watch();
  }

  #makeApp(): { readonly app: PlatformApp; readonly admission: ApiAdmission } {
    const { clock, logger, version, dashboardFolder, viewerFolder, adminToken } = this.#options;
    const { db } = this.#database;
    const settings = this.#config.platform;
    const masterKey = (): MasterKey => this.#openedMasterKey();
    const signingKeys = new SigningKeys({ db, clock, masterKey });
    const accessTokens = new AccessTokens({ keys: signingKeys, clock, issuer: settings.public_url });
    const accounts = tokenAccounts(accessTokens);
    const edgeSecret = this.#options.localEdge?.visitorSecret;
    const admission = new ApiAdmission({ clock, logger, settings, adminToken, accounts, edgeSecret });
    const app = createPlatformApp({
      onWritesRefused: (userId) => admission.noteWritesRefused(userId),
      logger,
      settings,
      edgeSecret,
      databaseReady: () => this.#watch.isPrepared,
      onDatabaseAway: (error) => this.#watch.noteAway(error),
    });
    addPlatformRoutes(app, {
      db,
      clock,
      logger,
      settings,
      version,
      adminToken,
      names: this.#config.names,
      accountShare: this.#config.limits.account_share,
      linkDb: this.#linkDatabase.db,
      admission,
      signingKeys,
      accessTokens,
      ownCredential: this.#options.localEdge?.credential,
      platformLabel: platformLabelOf(new URL(settings.public_url).hostname, this.#config.server.domain),
      domains: domainSettings(this.#config),
      domainVerifier: this.#domainVerifier,
      onDomainNews: (news) => this.#domainNews(news),
      edges: createEdgeCalls({ db, clock, logger, masterKey, localEdge: this.#localEdge() }),
      billing: this.#billingContext(),
      keyUses: this.#keyUses,
      changes: this.#changes,
      certificates: () => this.#certificatesForEdges(),
      clientDocuments: createClientDocuments(this.#config, clock),
      dashboard: dashboardFolder === undefined ? null : readDashboard(dashboardFolder),
      viewer: viewerFolder === undefined ? new Map() : readStaticFiles(viewerFolder),
      masterKey,
      wakeMailer: () => this.#mail.wake(),
      firstAccountMade: () => this.#firstAccount.remove(),
      ordering: this.#config.acme.enabled ? this.#certificates : null,
      port: () => this.#server.address.port,
    });
    return { app, admission };
  }

  /** Of a platform that cannot tell them right now nobody is to think that it has none: edges would forget theirs. */
  #certificatesForEdges(): KeptCertificates | null {
    const { kept } = this.#certificates;
    if (kept === null && this.#config.acme.enabled) throw new Fault('CERTIFICATES_AWAY');
    return kept;
  }

  #makeTls(): PlatformTls {
    const { clock, logger } = this.#options;
    const { platform, tls } = this.#config;
    return new PlatformTls({
      publicUrl: platform.public_url,
      files: tls,
      db: this.#database.db,
      clock,
      logger,
      certificates: () => this.#certificates.kept,
      onRenewed: (options) => this.#server.renew(options),
    });
  }

  #openedMasterKey(): MasterKey {
    if (this.#masterKey === undefined) throw notReady();
    return this.#masterKey;
  }

  #localEdge(): LocalEdge | null {
    const { localEdge, dataDir } = this.#options;
    return localEdge ? { name: localEdgeName(dataDir), url: localEdge.url } : null;
  }

  /** Stopped from the last to the first: streams of edges before the server that carries them, the database at the end. */
  #makeLife(): Lifecycle {
    const { clock, logger } = this.#options;
    const life = new Lifecycle({ clock, logger });
    life.add({ name: 'database', stop: () => this.#database.close() });
    const direct = this.#direct;
    if (direct !== null) life.add({ name: 'database behind the pooler', stop: () => direct.close() });
    life.add({ name: 'database connections of edges', stop: () => this.#linkDatabase.close() });
    life.add({ name: 'uses of keys', stop: () => this.#keyUses.stop() });
    const tls = this.#tls;
    if (tls !== null) life.add({ name: 'certificate of the port', start: () => tls.start(), stop: () => tls.stop() });
    // Before the database is met, so that /health answers while it is away.
    life.add({ name: 'platform API', start: () => this.#server.start(), stop: () => this.#server.stop() });
    const own = this.#stackServer;
    if (own !== null) life.add({ name: 'link of the own edge', start: () => own.start(), stop: () => own.stop() });
    life.add({ name: 'changes for edges', stop: () => this.#changes.stop() });
    life.add({ name: 'metering', stop: () => this.#billing.metering.stop() });
    life.add({ name: 'mail', stop: () => this.#mail.stop() });
    life.add({ name: 'looks at domains', stop: () => this.#domainVerifier.stop() });
    life.add({ name: 'certificates', stop: () => this.#certificates.stop() });
    life.add({ name: 'jobs', stop: () => this.#jobs.stop() });
    life.add({ name: 'database watch', start: () => this.#watch.start(), stop: () => this.#watch.stop() });
    return life;
  }
}

/** Whose an access token is, for counting calls before anybody has asked the database. */
const tokenAccounts = (tokens: AccessTokens): TokenAccounts => ({
  known: (token) => tokens.known(token)?.userId ?? null,
  lookForKey: (token) => tokens.lookForKey(token),
  check: async (token) => (await tokens.checkInMemory(token))?.userId ?? null,
});
