// The stack: the platform and the edge as separate processes, which are restarted after a crash, and the database for both. This process
// loads no code of the parts, so that it stays small and a crash of a part cannot affect it.

import { platformHostAtEdge, type ServerConfig } from '@tunnel/config/server';
import { type BackupFigures, type Clock, type Logger, randomToken, Secret } from '@tunnel/runtime';
import { Backups } from '../backup/backups.ts';
import { writeCrash } from '../data-dir/crash-reports.ts';
import type { Reach } from '../data-dir/data-dir.ts';
import { EmbeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { type Address, type PartName, type PartReady, type StartPart, toPlainConfig } from './messages.ts';
import { type PartLaunch, type PartOutput, PartProcess, type PartRun } from './part-process.ts';
import { SupervisedPart, type UnexpectedEnd } from './supervised-part.ts';

export interface StackDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly dataDir: string;
  readonly adminToken: Secret;
  readonly output: (part: PartName) => PartOutput;
  readonly onMakingDatabase: () => void;
  /** Starts a run of a part. Default: as a separate process. */
  readonly launch?: (launch: PartLaunch) => PartRun;
}

export class Stack {
  readonly #config: ServerConfig;
  readonly #options: StackDeps;
  /**
   * Credential by which the edge authenticates to the platform. The same for the whole run of the stack, so that either part can restart.
   */
  readonly #edgeCredential = new Secret(`tne_${randomToken(32)}`);
  /**
   * Secret by which the edge authenticates requests to the platform's host on behalf of visitors. The same for the whole run of the
   * stack.
   */
  readonly #visitorSecret = new Secret(randomToken(32));
  readonly #platform: SupervisedPart;
  readonly #edge: SupervisedPart;
  readonly #restarts: Record<PartName | 'database', number> = { edge: 0, platform: 0, database: 0 };
  #postgres: EmbeddedPostgres | null = null;
  /** Backups of the embedded database. Null with an external database. */
  #backups: Backups | null = null;
  #backupFigures: BackupFigures | null = null;
  #databaseUrl = new Secret('');
  #databaseSince = 0;
  /** Addresses of the parts when they last became ready. A restarted part uses the same addresses. */
  #platformAt: PartReady['platform'] = null;
  #edgeAt: PartReady['edge'] = null;

  constructor(config: ServerConfig, options: StackDeps) {
    this.#config = config;
    this.#options = options;
    this.#platform = this.#supervise('platform', ({ platform }) => {
      this.#platformAt = platform;
      this.#tellWhereEdgeIs();
    });
    this.#edge = this.#supervise('edge', ({ edge }) => {
      this.#edgeAt = edge;
      this.#tellWhereEdgeIs();
      this.#tellRestarts();
      this.#tellBackups();
    });
  }

  /** Addresses of the parts. Valid only while the stack is running. */
  get reach(): Reach {
    const { api = null, simulatorUrl = null, dns = null } = this.#platformAt ?? {};
    return { platform: api, edge: this.#edgeAt, simulatorUrl, dns };
  }

  /** Lines about backups for the operator, when the stack has started. */
  get backupLines(): readonly string[] {
    return this.#backups?.startLines ?? [];
  }

  /** Starts the stack. Rejects with a single fault, after stopping every part that has started. */
  async start(): Promise<void> {
    try {
      // The parts load while the database starts, because loading Node.js and their code takes about as long.
      this.#platform.load();
      this.#edge.load();
      this.#databaseUrl = await this.#findDatabase();
      await this.#platform.start();
      await this.#edge.start();
      await this.#backups?.startSchedule();
    } catch (error) {
      await this.stop({ drainMs: 0 });
      throw error;
    }
  }

  /**
   * Stops the stack. The edge drains while the platform is still running to receive its reports. The database stops after the final
   * flush, and hands over the last segment of its log, which is archived at the very end.
   */
  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    await this.#edge.stop({ drainMs });
    await this.#platform.stop({ drainMs: 0 });
    await this.#backups?.stopSchedule();
    await this.#postgres?.stop();
    await this.#backups?.stopArchive();
  }

  /** Stops the stack without a drain. The database receives a stop request and shuts down in the background. */
  stopNow(): void {
    this.#edge.kill();
    this.#platform.kill();
    void this.#postgres?.stop();
  }

  #supervise(part: PartName, onReady: (ready: PartReady) => void): SupervisedPart {
    const { clock, logger, dataDir, launch = (run) => new PartProcess(run) } = this.#options;
    const output = this.#options.output(part);
    return new SupervisedPart({
      part,
      clock,
      logger,
      onReady,
      launch: (onMessage) => launch({ part, dataDir, output, onMessage }),
      startMessage: () => this.#startMessage(),
      onEnded: (end) => this.#ended(end),
    });
  }

  #startMessage(): StartPart {
    const { dataDir, adminToken } = this.#options;
    const { link, api = null } = this.#platformAt ?? {};
    const isInFront = platformHostAtEdge(this.#config) !== null;
    return {
      kind: 'start',
      settings: withPorts(toPlainConfig(this.#config), this.#platformAt, this.#edgeAt),
      dataDir,
      adminToken: adminToken.reveal(),
      edgeCredential: this.#edgeCredential.reveal(),
      databaseUrl: this.#databaseUrl.reveal(),
      linkPort: link?.port ?? 0,
      platformUrl: link === undefined ? '' : urlOf(link),
      visitorSecret: isInFront ? this.#visitorSecret.reveal() : null,
      platformAt: api,
    };
  }

  async #findDatabase(): Promise<Secret> {
    const { url } = this.#config.database;
    if (url.reveal() !== '') return url;
    const { dataDir, logger, clock, version, onMakingDatabase } = this.#options;
    const backups = new Backups({
      ...{ settings: this.#config.backup, dataDir, version, clock, logger },
      onFigures: (figures) => {
        this.#backupFigures = figures;
        this.#tellBackups();
      },
    });
    const log = backups.logMode;
    this.#postgres = new EmbeddedPostgres({ dataDir, logger, clock, log, onDied: () => this.#databaseDied() });
    onMakingDatabase();
    const started = await this.#postgres.start();
    this.#databaseSince = clock.monotonic();
    this.#backups = backups;
    await backups.start(started.url);
    return started.url;
  }

  #ended({ part, livedMs: uptimeMs, code, signal, error, counters, output }: UnexpectedEnd): void {
    const { dataDir, version, clock } = this.#options;
    const printed = output === '' ? {} : { output };
    const crash = { part, version, uptimeMs, error, exitCode: code, signal, counters, ...printed };
    writeCrash(dataDir, crash, clock.now());
    this.#restarts[part] += 1;
    if (part === 'edge') this.#tellWhereEdgeIs();
    else this.#tellRestarts();
  }

  /** Records a crash of the database. The database restarts automatically. */
  #databaseDied(): void {
    const { dataDir, version, clock } = this.#options;
    const uptimeMs = clock.monotonic() - this.#databaseSince;
    writeCrash(dataDir, { part: 'database', version, uptimeMs, error: null, counters: {} }, clock.now());
    this.#databaseSince = clock.monotonic();
    this.#restarts.database += 1;
    this.#tellRestarts();
  }

  #tellWhereEdgeIs(): void {
    const url = this.#edge.isRunning && this.#edgeAt !== null ? urlOf(this.#edgeAt.stackApi) : null;
    this.#platform.tell({ kind: 'edge-at', url });
  }

  #tellRestarts(): void {
    this.#edge.tell({ kind: 'restarts', restarts: this.#restarts });
  }

  #tellBackups(): void {
    if (this.#backupFigures !== null) this.#edge.tell({ kind: 'backups', figures: this.#backupFigures });
  }
}

const urlOf = ({ host, port }: Address): string => `http://${host}:${port}`;

interface Settings {
  readonly server: object;
  readonly udp: object;
  readonly platform: { readonly billing: object };
}

/**
 * Returns the settings with the ports that the parts chose at their first start. Restarted parts keep the ports, because clients,
 * bookmarks and run.json already contain them.
 */
const withPorts = (settings: object, platform: PartReady['platform'], edge: PartReady['edge']): object => {
  const { server, udp, platform: api, ...rest } = settings as Settings;
  const portOf = (url: string): number => Number(new URL(url).port);
  const simulator = platform?.simulatorUrl ? { simulator_port: portOf(platform.simulatorUrl) } : {};
  return {
    ...rest,
    server: {
      ...server,
      ...(edge === null
        ? {}
        : {
            control_port: edge.control.port,
            http_port: edge.http.port,
            ...(edge.https === null ? {} : { https_port: edge.https.port }),
            api_port: edge.api.port,
            metrics_port: edge.metrics.port,
          }),
    },
    udp: edge === null || edge.udpPorts.length === 0 ? udp : { ...udp, ports: edge.udpPorts },
    platform: {
      ...api,
      ...(platform === null ? {} : { port: platform.api.port }),
      billing: { ...api.billing, ...simulator },
    },
  };
};
