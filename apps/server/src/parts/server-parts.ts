// The parts of a server process, which depend on the command. The parts start in the order of their dependencies and stop in reverse
// order: edge, platform, payment simulator, and last, after the final flush, the database. The code of a part is loaded only if the
// process runs the part.
import { join } from 'node:path';
import type { ServerConfig } from '@tunnel/config/server';
import type { Edge, EdgeDeps } from '@tunnel/edge';
import type { MailNotice, Platform, PlatformDeps, ProcessorAccess } from '@tunnel/platform';
import type { BackupFigures, Clock, Logger, Secret } from '@tunnel/runtime';
import type { Simulator } from '@tunnel/simulator';
import type { Backups } from '../backup/backups.ts';
import { DASHBOARD_FOLDER, GUIDE_FOLDER, VIEWER_FOLDER } from '../bundle.ts';
import type { Reach } from '../data-dir/data-dir.ts';
import type { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';

/** Kind of a server process. `simulator` runs only the payment simulator. */
export type ServerKind = 'edge' | 'platform' | 'simulator';

/** Addresses and secrets for the connections between the parts of a stack. */
export interface StackLinks {
  readonly databaseUrl: Secret;
  readonly edgeCredential: Secret;
  readonly linkPort: number;
  readonly platformUrl: string;
  /** Secret by which the edge authenticates visitors' requests to the platform. Null if the edge does not serve the platform's host. */
  readonly visitorSecret: Secret | null;
  readonly platformAt: { readonly host: string; readonly port: number } | null;
  readonly edgeUrl: () => string | null;
  readonly restarts: () => Readonly<Record<string, number>>;
  /** Figures of the backups. Null while backups are off. */
  readonly backups: () => BackupFigures | null;
}

export interface PartsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly dataDir: string;
  readonly adminToken: Secret;
  readonly onMail: (notice: MailNotice) => void;
  /** Called before the embedded database starts, because the first start takes a few seconds. */
  readonly onMakingDatabase: () => void;
  /** Webhook URL for a simulator that runs without a platform. If absent, the simulator queues webhooks. */
  readonly webhookUrl?: string;
  /** Links between the parts of a stack. If absent, the process runs outside a stack and uses only the configuration. */
  readonly stack?: StackLinks;
}

/** Loads the code of a part ahead of its start, while the process waits for another event. */
export const loadCodeOf = async (kind: 'edge' | 'platform'): Promise<void> => {
  if (kind === 'edge') await import('@tunnel/edge');
  else await Promise.all([import('@tunnel/platform'), import('@tunnel/simulator')]);
};

export class ServerParts {
  readonly #config: ServerConfig;
  readonly #options: PartsOptions;
  readonly #kind: ServerKind;
  #postgres: EmbeddedPostgres | null = null;
  /** Backups of the embedded database, if this process runs the database. */
  #backups: Backups | null = null;
  #backupFigures: BackupFigures | null = null;
  #simulator: Simulator | null = null;
  #platform: Platform | null = null;
  #edge: Edge | null = null;

  constructor(kind: ServerKind, config: ServerConfig, options: PartsOptions) {
    this.#kind = kind;
    this.#config = config;
    this.#options = options;
  }

  /** The payment simulator. Null if a different payment processor is configured. */
  get simulator(): Simulator | null {
    return this.#simulator;
  }

  get platform(): Platform | null {
    return this.#platform;
  }

  get edge(): Edge | null {
    return this.#edge;
  }

  /** Addresses of the parts. Valid only while the parts are running. */
  get reach(): Reach {
    return {
      platform: this.#platform?.address ?? null,
      edge: this.#edge?.addresses ?? null,
      simulatorUrl: this.#simulator?.url ?? null,
      dns: this.#platform?.dnsAddress ?? null,
    };
  }

  /** Lines about backups for the operator, when the parts have started. */
  get backupLines(): readonly string[] {
    return this.#backups?.startLines ?? [];
  }

  /** Load figures of the edge, read after a crash. Empty if a broken edge cannot report the figures. */
  get counters(): Readonly<Record<string, number>> {
    try {
      return this.#edge?.counters ?? {};
    } catch {
      return {};
    }
  }

  /** Starts the parts. Rejects with a single fault, after stopping every part that has started. */
  async start(): Promise<void> {
    try {
      const databaseUrl = this.#kind === 'platform' ? await this.#findDatabase() : null;
      await this.#startSimulator();
      if (databaseUrl !== null) await this.#startPlatform(databaseUrl);
      if (this.#kind === 'edge') await this.#startEdge();
      await this.#backups?.startSchedule();
    } catch (error) {
      await this.stop({ drainMs: 0 });
      throw error;
    }
  }

  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    await this.#edge?.stop({ drainMs });
    await this.#platform?.stop();
    await this.#simulator?.stop();
    await this.#backups?.stopSchedule();
    await this.#postgres?.stop();
    await this.#backups?.stopArchive();
  }

  /** Stops the parts without a drain. The database receives a stop request and shuts down in the background. */
  stopNow(): void {
    this.#edge?.stopNow();
    void this.#platform?.stop();
    void this.#simulator?.stop();
    void this.#postgres?.stop();
  }

  async #findDatabase(): Promise<Secret> {
    const { database, backup: settings } = this.#config;
    const { dataDir, logger, clock, version, onMakingDatabase, stack } = this.#options;
    if (stack !== undefined) return stack.databaseUrl;
    if (database.url.reveal() !== '') return database.url;
    const { EmbeddedPostgres } = await import('../embedded-postgres/embedded-postgres.ts');
    const { Backups } = await import('../backup/backups.ts');
    const onFigures = (figures: BackupFigures): void => {
      this.#backupFigures = figures;
    };
    const backups = new Backups({ settings, dataDir, version, clock, logger, onFigures });
    const postgres = new EmbeddedPostgres({ dataDir, logger, clock, log: backups.logMode });
    this.#postgres = postgres;
    onMakingDatabase();
    const { url } = await postgres.start();
    this.#backups = backups;
    await backups.start(url);
    return url;
  }

  /** Starts the payment simulator, before the platform, because the platform calls the simulator and receives webhooks from it. */
  async #startSimulator(): Promise<void> {
    const { processor, simulator_port: port } = this.#config.platform.billing;
    const isAlone = this.#kind === 'simulator';
    if (this.#kind === 'edge' || (processor !== 'simulator' && !isAlone)) return;
    const { clock, logger, dataDir, webhookUrl = null } = this.#options;
    const { Simulator } = await import('@tunnel/simulator');
    const simulator = new Simulator({
      folder: join(dataDir, 'simulator'),
      host: '127.0.0.1',
      port,
      portKey: isAlone ? '--port' : 'platform.billing.simulator_port',
      clock,
      logger,
      webhookUrl: () => (isAlone ? webhookUrl : (this.#platform?.webhookUrl ?? null)),
    });
    await simulator.start();
    this.#simulator = simulator;
  }

  async #startPlatform(databaseUrl: Secret): Promise<void> {
    const { clock, logger, version, dataDir, adminToken, onMail, stack } = this.#options;
    const simulator = this.#simulator;
    const { createPlatform } = await import('@tunnel/platform');
    const platform = createPlatform(this.#config, {
      clock,
      logger,
      version,
      dataDir,
      adminToken,
      databaseUrl,
      onMail,
      dashboardFolder: DASHBOARD_FOLDER,
      viewerFolder: VIEWER_FOLDER,
      guideFolder: GUIDE_FOLDER,
      // In a stack, the edge exports the metrics of the backups.
      ...(stack === undefined ? { backups: () => this.#backupFigures } : { localEdge: localEdgeOf(stack) }),
      ...(simulator === null ? {} : { simulator: accessTo(simulator) }),
    });
    this.#platform = platform;
    await platform.start();
    // Waits for the DNS responder, so that its address is included in the platform's addresses. With a slow database, the start continues
    // without the responder.
    await within(platform.certificatesReady(), clock, CERTIFICATES_READY_MS);
  }

  async #startEdge(): Promise<void> {
    const { clock, logger, version, dataDir, adminToken, stack } = this.#options;
    const { createEdge } = await import('@tunnel/edge');
    const edge = createEdge(this.#config, {
      clock,
      logger,
      version,
      dataDir,
      adminToken,
      ...(stack === undefined
        ? {}
        : {
            platform: { url: stack.platformUrl, credential: stack.edgeCredential },
            restarts: stack.restarts,
            backups: stack.backups,
            ...platformAtOf(stack),
          }),
    });
    this.#edge = edge;
    await edge.start();
  }
}

/** How long the start waits for the DNS responder for ACME challenges. */
const CERTIFICATES_READY_MS = 3000;

const within = (begun: Promise<void>, clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const late = clock.setTimeout(resolve, ms);
    void begun.finally(() => {
      late.cancel();
      resolve();
    });
  });

const localEdgeOf = ({
  edgeCredential,
  edgeUrl,
  linkPort,
  visitorSecret,
}: StackLinks): NonNullable<PlatformDeps['localEdge']> => ({
  credential: edgeCredential,
  url: edgeUrl,
  callsAtPort: linkPort,
  ...(visitorSecret === null ? {} : { visitorSecret }),
});

/**
 * Returns the address at which the edge connects to the platform for visitors. A platform that listens on all interfaces also listens on
 * loopback.
 */
const platformAtOf = ({ platformAt, visitorSecret }: StackLinks): Pick<EdgeDeps, 'platformAt'> => {
  if (platformAt === null || visitorSecret === null) return {};
  const { host, port } = platformAt;
  return { platformAt: { host: EVERYWHERE[host] ?? host, port, secret: visitorSecret } };
};

const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const accessTo = (simulator: Simulator): ProcessorAccess => ({
  secretKey: simulator.secretKey,
  webhookSecret: () => simulator.webhookSecret,
  apiUrl: () => simulator.url,
});
