// The composition root of the platform: creates and connects all parts, starts the parts in order and stops them in reverse order.

import { type ServerConfig } from '@tunnel/config/server';
import { BILLING_WEBHOOK_PATH, EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { createProcessGate, createStackGate, type ProcessGate } from '@tunnel/http-shell';
import { platformLabelOf } from '@tunnel/rules/names';
import {
  type BackupFigures,
  type Clock,
  createTracer,
  Lifecycle,
  type Logger,
  type Secret,
  type Tracer,
} from '@tunnel/runtime';
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
import { RequestSpans } from './http/server/request-spans.ts';
import type { PlatformApp } from './http/shared/platform-env.ts';
import { createRequestSource } from './http/shared/trusted-edge-header.ts';
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

/** Maximum number of open connections from all callers together. Far below the file descriptor limit of a process. */
const CONNECTIONS_MAX = 4096;
/**
 * Database connections of one process reserved for calls from edges, so that edges never wait for API calls. One connection listens for
 * changes.
 * @limit operator: Database connections per platform process, for edges | further calls wait
 */
const DATABASE_LINK_CONNECTIONS = 8;

export interface PlatformDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  /** A postgres://… URL. The database may be unavailable when the platform starts. */
  readonly databaseUrl: Secret;
  readonly dataDir: string;
  /** The operator's token for reading the metrics. */
  readonly adminToken: Secret;
  /** The edge of the same stack. Absent if the platform runs without an edge. */
  readonly localEdge?: StackEdge;
  /** Access to the payment processor's simulator, which runs elsewhere. Required if the configuration sets the processor to `simulator`. */
  readonly simulator?: ProcessorAccess;
  /** Folder of the built dashboard. If the folder is absent or empty, /app/ reports that there is no dashboard. */
  readonly dashboardFolder?: string;
  /** Folder of the viewer for the API reference. If the folder is absent or empty, /docs leads to the bare document. */
  readonly viewerFolder?: string;
  /** Folder of the rendered guide. If the folder is absent or empty, /docs/guide/ reports that there is no guide. */
  readonly guideFolder?: string;
  /** Called when a mail was written to a file, so that the console can show the mail. */
  readonly onMail?: (notice: MailNotice) => void;
  /** Figures of the backups, for the platform's metrics. Returns null while backups are off. Absent in a stack, whose edge exports them. */
  readonly backups?: () => BackupFigures | null;
}

/** Data shared by the platform and the edge of the same stack. */
export interface StackEdge extends Pick<LocalEdge, 'url'> {
  /** Credential of the edge, generated by the stack at every start. */
  readonly credential: Secret;
  /** Port of the loopback listener called by the edge. 0 means any free port. */
  readonly callsAtPort: number;
  /**
   * Secret with which the edge proves that a visitor's request was forwarded by the edge. Absent if the edge does not serve the
   * platform's host.
   */
  readonly visitorSecret?: Secret;
}

export interface Platform {
  /**
   * Starts the platform. Rejects with a fault naming the port and its config key if the port is taken, and with a fault if the database
   * responds but is unusable; nothing stays open then. An unavailable database is waited for: until the database is ready, /health
   * returns 200 and all other paths return 503.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Address of the public listener. Only defined while the platform runs. */
  readonly address: { readonly host: string; readonly port: number; readonly tls: boolean };
  /** Address of the listener for the edge of the same stack. Only defined while the platform runs. Null without such an edge. */
  readonly stackAddress: { readonly host: string; readonly port: number } | null;
  /**
   * host:port of the DNS responder for dns-01 challenges. Null without a responder, or if its port could not be opened. Only defined
   * while the platform runs.
   */
  readonly dnsAddress: string | null;
  /**
   * Resolves when certificate management and its DNS responder have started, or have failed to start for now. Resolves at once if this
   * platform manages no certificates.
   */
  certificatesReady(): Promise<void>;
  /** URL for webhooks from a payment processor on the same machine. Null while the platform is not listening. */
  readonly webhookUrl: string | null;
}

/** Maps wildcard listen addresses, which cannot be called, to loopback addresses. */
const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const LOOPBACK = '127.0.0.1';
const LOOPBACKS = ['127.0.0.0/8', '::1'];

const NEWER_SCHEMA =
  'a newer version has added migrations to the database, and they allow this version: docs/upgrades.md';

/** Time limit for stopping the platform with all its parts. */
const STOP_MS = 10_000;

export const createPlatform = (config: ServerConfig, deps: PlatformDeps): Platform =>
  new ComposedPlatform(config, deps);

class ComposedPlatform implements Platform {
  readonly #config: ServerConfig;
  readonly #options: PlatformDeps;
  readonly #database: Database;
  /** Connection directly to PostgreSQL, if the main database URL points to a pooler. Null without a direct URL. */
  readonly #direct: Database | null;
  /** Separate database connections for edges, so that edges never wait for API calls. */
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
  /** Traces of requests. Null without telemetry. */
  readonly #tracer: Tracer | null;
  readonly #spans: RequestSpans | null;
  readonly #app: PlatformApp;
  readonly #connections: ProcessGate;
  /** TLS of the public port. Null for unencrypted HTTP, on the local machine or behind a proxy. */
  readonly #tls: PlatformTls | null;
  readonly #server: HttpServer;
  /** Listener for the edge of the same stack. Neither `[platform] host` nor the rules of the public port apply to this listener. */
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
    this.#domainVerifier = this.#makeDomainVerifier();
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
    this.#tracer = createTracer(config.telemetry, { ...options, part: 'platform' });
    this.#spans = this.#tracer === null ? null : this.#makeSpans(this.#tracer);
    const { app, admission } = this.#makeApp();
    this.#app = app;
    const { host, port } = config.platform;
    this.#connections = createProcessGate(config.limits, {
      takes: 'callers',
      callersMax: CONNECTIONS_MAX,
      clock,
      logger,
      // Visitors forwarded by the edge in front are counted by the edge and per request. The edge's own connections belong to no single
      // visitor address.
      trustedProxies: [...config.platform.trusted_proxies, ...(options.localEdge?.visitorSecret ? LOOPBACKS : [])],
    });
    this.#tls = config.platform.tls ? this.#makeTls() : null;
    const tls = this.#tls === null ? {} : { tls: this.#tls };
    const { gate } = this.#connections;
    this.#server = new HttpServer({ host, port, app, gate, admission, ...tls, spans: this.#spans, clock, logger });
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
    // A link file from an earlier run may be void. The file is written again once the database confirms that there is no account.
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
      spans: this.#spans,
      gate: createStackGate({ clock, logger }),
      clock,
      logger,
    });
  }

  #makeSpans(tracer: Tracer): RequestSpans {
    const { clock, localEdge } = this.#options;
    const sourceOf = createRequestSource({ settings: this.#config.platform, edgeSecret: localEdge?.visitorSecret });
    return new RequestSpans({ tracer, clock, sourceOf });
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

  #makeDomainVerifier(): DomainVerifier {
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
    const { clock, logger, version, localEdge, dataDir, databaseUrl: url } = this.#options;
    const settings = this.#config.platform;
    return new DatabaseWatch({
      prepare: async () => {
        const { applied, newer } = await migratePatiently({ url, logger }, { version });
        if (applied.length > 0) logger.info({ migrations: applied }, 'the database schema is up to date');
        this.#masterKey = await prepareSigningKeys(db, masterKeySource(settings, dataDir), clock.now());
        const { file, isOpenToAll } = this.#masterKey;
        if (isOpenToAll) logger.warn({ file }, 'every user of this machine can read the key file');
        await encryptApiSecrets(db, this.#masterKey);
        await upsertPlans(db, settings.plans);
        await this.#firstAccount.prepare(db, this.#masterKey, clock.now());
        if (localEdge) await ensureLocalEdge(db, localEdgeName(dataDir), localEdge.credential);
        if (this.#database.isPooled) await this.#tellOfPooler();
        if (newer.length > 0) logger.warn({ migrations: newer }, NEWER_SCHEMA);
      },
      onPrepared: () => this.#startBackground(),
      probe: async () => {
        await sql`select 1`.execute(db);
      },
      clock,
      logger,
    });
  }

  /**
   * Logs that the database is behind a pooler, with a warning if the role has no statement_timeout. Behind a pooler, only the role can
   * limit statements outside a transaction.
   */
  async #tellOfPooler(): Promise<void> {
    const { logger } = this.#options;
    const { rows } = await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.execute(
      this.#database.db,
    );
    if (rows[0]?.limit !== '0') logger.info({}, 'the database is behind a pooler');
    else logger.warn({}, 'the database is behind a pooler, and its role has no statement_timeout: docs/run.md');
  }

  /** Starts the background work, which needs the database tables and therefore waits for the database. */
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
    const { clock, logger, version, dashboardFolder, viewerFolder, guideFolder, adminToken } = this.#options;
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
      spans: this.#spans,
      databaseReady: () => this.#watch.isPrepared,
      onDatabaseAway: (error) => this.#watch.noteAway(error),
    });
    addPlatformRoutes(app, {
      db,
      clock,
      logger,
      settings,
      version,
      droppedSpans: () => this.#tracer?.dropped ?? 0,
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
      guide: guideFolder === undefined ? new Map() : readStaticFiles(guideFolder),
      masterKey,
      wakeMailer: () => this.#mail.wake(),
      firstAccountMade: () => this.#firstAccount.remove(),
      ordering: this.#config.acme.enabled ? this.#certificates : null,
      backups: this.#options.backups,
      port: () => this.#server.address.port,
    });
    return { app, admission };
  }

  /**
   * Returns the certificates for edges, or null if ACME is off. Throws CERTIFICATES_AWAY while certificates are temporarily unavailable:
   * with null, edges would delete their certificates.
   */
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

  /**
   * Builds the lifecycle. Parts stop from last to first: event streams to edges before the server carrying the streams, and the database
   * at the end.
   */
  #makeLife(): Lifecycle {
    const { clock, logger } = this.#options;
    const life = new Lifecycle({ clock, logger });
    life.add({ name: 'database', stop: () => this.#database.close() });
    const direct = this.#direct;
    if (direct !== null) life.add({ name: 'database behind the pooler', stop: () => direct.close() });
    life.add({ name: 'database connections for edges', stop: () => this.#linkDatabase.close() });
    life.add({ name: 'key usage', stop: () => this.#keyUses.stop() });
    // The remaining spans are delivered after the last request.
    if (this.#tracer !== null) life.add(this.#tracer);
    const tls = this.#tls;
    if (tls !== null) life.add({ name: 'platform certificate', start: () => tls.start(), stop: () => tls.stop() });
    // The API starts before the database watch, so that /health responds while the database is unavailable.
    life.add({ name: 'platform API', start: () => this.#server.start(), stop: () => this.#server.stop() });
    const own = this.#stackServer;
    if (own !== null) life.add({ name: 'link to the local edge', start: () => own.start(), stop: () => own.stop() });
    life.add({ name: 'changes for edges', stop: () => this.#changes.stop() });
    life.add({ name: 'metering', stop: () => this.#billing.metering.stop() });
    life.add({ name: 'mail', stop: () => this.#mail.stop() });
    life.add({ name: 'domain checks', stop: () => this.#domainVerifier.stop() });
    life.add({ name: 'certificates', stop: () => this.#certificates.stop() });
    life.add({ name: 'jobs', stop: () => this.#jobs.stop() });
    life.add({ name: 'database watch', start: () => this.#watch.start(), stop: () => this.#watch.stop() });
    return life;
  }
}

/** Finds the account of an access token without querying the database, to count calls per account before any query. */
const tokenAccounts = (tokens: AccessTokens): TokenAccounts => ({
  known: (token) => tokens.known(token)?.userId ?? null,
  lookForKey: (token) => tokens.lookForKey(token),
  check: async (token) => (await tokens.checkInMemory(token))?.userId ?? null,
});
