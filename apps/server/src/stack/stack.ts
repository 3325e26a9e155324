// The stack: platform and edge as processes of their own, which are started again when they crash, and the database below them. This
// process stays small, and holds none of their code: what can break is in them.

import { platformHostAtEdge, type ServerConfig } from '@tunnel/config/server';
import { type Clock, type Logger, randomToken, Secret } from '@tunnel/runtime';
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
  /** Runs a part; as a process of its own unless told. */
  readonly launch?: (launch: PartLaunch) => PartRun;
}

export class Stack {
  readonly #config: ServerConfig;
  readonly #options: StackDeps;
  /** Of this run: by it the edge shows itself to the platform, whichever of the two was started again. */
  readonly #edgeCredential = new Secret(`tne_${randomToken(32)}`);
  /** The same, for what the edge says of visitors of the platform's host. */
  readonly #visitorSecret = new Secret(randomToken(32));
  readonly #platform: SupervisedPart;
  readonly #edge: SupervisedPart;
  readonly #restarts: Record<PartName | 'database', number> = { edge: 0, platform: 0, database: 0 };
  #postgres: EmbeddedPostgres | null = null;
  #databaseUrl = new Secret('');
  #databaseSince = 0;
  /** Where the parts were when they last became ready: a part that is started again comes back there. */
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
    });
  }

  /** Only while it runs. */
  get reach(): Reach {
    const { api = null, simulatorUrl = null, dns = null } = this.#platformAt ?? {};
    return { platform: api, edge: this.#edgeAt, simulatorUrl, dns };
  }

  /** Rejects with one fault; nothing then stays open. */
  async start(): Promise<void> {
    try {
      // Node.js and their code take about as long to load as the database takes to start.
      this.#platform.load();
      this.#edge.load();
      this.#databaseUrl = await this.#findDatabase();
      await this.#platform.start();
      await this.#edge.start();
    } catch (error) {
      await this.stop({ drainMs: 0 });
      throw error;
    }
  }

  /** The edge drains while the platform still hears it; the database goes last, after the final flush. */
  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    await this.#edge.stop({ drainMs });
    await this.#platform.stop({ drainMs: 0 });
    await this.#postgres?.stop();
  }

  /** Without a goodbye. The database is told to stop, and goes on alone until it has. */
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
    const { dataDir, logger, clock, onMakingDatabase } = this.#options;
    this.#postgres = new EmbeddedPostgres({ dataDir, logger, clock, onDied: () => this.#databaseDied() });
    onMakingDatabase();
    const started = await this.#postgres.start();
    this.#databaseSince = clock.monotonic();
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

  /** It starts itself again. */
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
}

const urlOf = ({ host, port }: Address): string => `http://${host}:${port}`;

interface Settings {
  readonly server: object;
  readonly udp: object;
  readonly platform: { readonly billing: object };
}

/** Ports that were any free one at the first start stay what they became: clients, bookmarks and run.json know them by now. */
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
