// The parts of one server process, joined: which of them there are depends on the command. Started in the order in which they
// need each other, stopped the other way round: edge, platform, the payment processor's stand-in, and the database last, after the
// final flush.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEdge, type Edge } from '@tunnel/edge';
import { createPlatform, type MailNotice, type Platform, type ProcessorAccess } from '@tunnel/platform';
import type { Clock, Logger, Secret, ServerConfig } from '@tunnel/runtime';
import { Simulator } from '@tunnel/simulator';
import { EmbeddedPostgres } from './embedded-postgres/embedded-postgres.ts';

/** Seen from the bundle as from this file: both lie one folder below their app. */
const DASHBOARD_FOLDER = fileURLToPath(new URL('../../dashboard/dist', import.meta.url));
const VIEWER_FOLDER = fileURLToPath(new URL('../dist/api-reference', import.meta.url));

/** `stack`: everything in one process; `simulator`: the payment processor's stand-in alone. */
export type ServerKind = 'stack' | 'edge' | 'platform' | 'simulator';

export interface PartsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly dataDir: string;
  readonly adminToken: Secret;
  readonly onMail: (notice: MailNotice) => void;
  /** The first start of the embedded database takes a few seconds. */
  readonly onMakingDatabase: () => void;
  /** Of a simulator that runs alone; absent: its webhooks wait. */
  readonly webhookUrl?: string;
}

export class ServerParts {
  readonly #config: ServerConfig;
  readonly #deps: PartsDeps;
  readonly #kind: ServerKind;
  #postgres: EmbeddedPostgres | null = null;
  #simulator: Simulator | null = null;
  #platform: Platform | null = null;
  #edge: Edge | null = null;

  constructor(kind: ServerKind, config: ServerConfig, deps: PartsDeps) {
    this.#kind = kind;
    this.#config = config;
    this.#deps = deps;
  }

  /** null: the payment processor is elsewhere. */
  get simulator(): Simulator | null {
    return this.#simulator;
  }

  get platform(): Platform | null {
    return this.#platform;
  }

  get edge(): Edge | null {
    return this.#edge;
  }

  /** Rejects with one fault; nothing then stays open. */
  async start(): Promise<void> {
    try {
      const hasPlatform = this.#kind === 'stack' || this.#kind === 'platform';
      const databaseUrl = hasPlatform ? await this.#findDatabase() : null;
      await this.#startSimulator();
      if (databaseUrl !== null) await this.#startPlatform(databaseUrl);
      if (this.#kind === 'stack' || this.#kind === 'edge') await this.#startEdge();
    } catch (error) {
      await this.stop({ drainMs: 0 });
      throw error;
    }
  }

  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    await this.#edge?.stop({ drainMs });
    await this.#platform?.stop();
    await this.#simulator?.stop();
    await this.#postgres?.stop();
  }

  /** Without a goodbye. The database is told to stop, and goes on alone until it has. */
  stopNow(): void {
    this.#edge?.stopNow();
    void this.#platform?.stop();
    void this.#simulator?.stop();
    void this.#postgres?.stop();
  }

  async #findDatabase(): Promise<Secret> {
    const { database } = this.#config;
    if (database.url.reveal() !== '') return database.url;
    const { dataDir, logger, clock, onMakingDatabase } = this.#deps;
    const postgres = new EmbeddedPostgres({ dataDir, logger, clock });
    this.#postgres = postgres;
    onMakingDatabase();
    return (await postgres.start()).url;
  }

  /** Before the platform, which asks it, and to which it sends its webhooks. */
  async #startSimulator(): Promise<void> {
    const { processor, simulator_port: port } = this.#config.platform.billing;
    const isAlone = this.#kind === 'simulator';
    if (this.#kind === 'edge' || (processor !== 'simulator' && !isAlone)) return;
    const { clock, logger, dataDir, webhookUrl = null } = this.#deps;
    const simulator = new Simulator({
      folder: join(dataDir, 'simulator'),
      ...{ host: '127.0.0.1', port, portKey: isAlone ? '--port' : 'platform.billing.simulator_port', clock, logger },
      webhookUrl: () => (isAlone ? webhookUrl : (this.#platform?.webhookUrl ?? null)),
    });
    await simulator.start();
    this.#simulator = simulator;
  }

  async #startPlatform(databaseUrl: Secret): Promise<void> {
    const { clock, logger, version, dataDir, onMail } = this.#deps;
    // Asked for only once a caller asks, when the edge is there.
    const localEdge = {
      fetch: (request: Request) =>
        this.#edge?.fetchApi(request) ?? Promise.reject(new Error('the edge is not running')),
    };
    const isStack = this.#kind === 'stack';
    const simulator = this.#simulator;
    const platform = createPlatform(this.#config, {
      ...{ clock, logger, version, dataDir, databaseUrl, onMail },
      ...{ dashboardFolder: DASHBOARD_FOLDER, viewerFolder: VIEWER_FOLDER },
      ...(isStack ? { localEdge } : {}),
      ...(simulator === null ? {} : { simulator: accessTo(simulator) }),
    });
    this.#platform = platform;
    await platform.start();
  }

  async #startEdge(): Promise<void> {
    const { clock, logger, version, dataDir, adminToken } = this.#deps;
    const platform = this.#platform;
    const edge = createEdge(this.#config, {
      ...{ clock, logger, version, dataDir, adminToken },
      ...(platform === null
        ? {}
        : { platform: { fetch: (request) => platform.fetchInternal(request), credential: platform.localCredential } }),
    });
    this.#edge = edge;
    await edge.start();
  }
}

const accessTo = (simulator: Simulator): ProcessorAccess => ({
  secretKey: simulator.secretKey,
  webhookSecret: () => simulator.webhookSecret,
  apiUrl: () => simulator.url,
});
