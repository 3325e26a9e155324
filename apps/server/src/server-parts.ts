// The parts of one server process, joined: which of them there are depends on the command. Started in the order in which they
// need each other, stopped the other way round: edge, platform, and the database last, after the final flush.
import { fileURLToPath } from 'node:url';
import { createEdge, type Edge } from '@tunnel/edge';
import { createPlatform, type MailNotice, type Platform } from '@tunnel/platform';
import type { Clock, Logger, Secret, ServerConfig } from '@tunnel/runtime';
import { EmbeddedPostgres } from './embedded-postgres/embedded-postgres.ts';

/** Seen from the bundle as from this file: both lie one folder below their app. */
const DASHBOARD_FOLDER = fileURLToPath(new URL('../../dashboard/dist', import.meta.url));
const VIEWER_FOLDER = fileURLToPath(new URL('../dist/api-reference', import.meta.url));

/** `stack`: everything in one process. */
export type ServerKind = 'stack' | 'edge' | 'platform';

export interface PartsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly dataDir: string;
  readonly adminToken: Secret;
  readonly onMail: (notice: MailNotice) => void;
  /** The first start of the embedded database takes a few seconds. */
  readonly onMakingDatabase: () => void;
}

export class ServerParts {
  readonly #config: ServerConfig;
  readonly #deps: PartsDeps;
  readonly #kind: ServerKind;
  #postgres: EmbeddedPostgres | null = null;
  #platform: Platform | null = null;
  #edge: Edge | null = null;

  constructor(kind: ServerKind, config: ServerConfig, deps: PartsDeps) {
    this.#kind = kind;
    this.#config = config;
    this.#deps = deps;
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
      if (this.#kind !== 'edge') await this.#startPlatform(await this.#findDatabase());
      if (this.#kind !== 'platform') await this.#startEdge();
    } catch (error) {
      await this.stop({ drainMs: 0 });
      throw error;
    }
  }

  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    await this.#edge?.stop({ drainMs });
    await this.#platform?.stop();
    await this.#postgres?.stop();
  }

  /** Without a goodbye. The database is told to stop, and goes on alone until it has. */
  stopNow(): void {
    this.#edge?.stopNow();
    void this.#platform?.stop();
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

  async #startPlatform(databaseUrl: Secret): Promise<void> {
    const { clock, logger, version, dataDir, onMail } = this.#deps;
    // Asked for only once a caller asks, when the edge is there.
    const localEdge = {
      fetch: (request: Request) =>
        this.#edge?.fetchApi(request) ?? Promise.reject(new Error('the edge is not running')),
    };
    const isStack = this.#kind === 'stack';
    const platform = createPlatform(this.#config, {
      ...{ clock, logger, version, dataDir, databaseUrl, onMail },
      ...{ dashboardFolder: DASHBOARD_FOLDER, viewerFolder: VIEWER_FOLDER },
      ...(isStack ? { localEdge } : {}),
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
