// The payment processor's stand-in on this machine: its server, its state and its life. It speaks the processor's own calls to the
// same SDK, so what runs against it is what runs against the processor.
import type { Clock, Logger, Secret, Timer } from '@tunnel/runtime';
import { isLoopbackHost } from './guard.ts';
import { PeriodEnds } from './period-ends.ts';
import { simRoutes } from './routes.ts';
import { loadSecrets, type SimSecrets } from './sim-secrets.ts';
import { SimServer } from './sim-server.ts';
import { SimState } from './sim-state.ts';
import { SimWorld } from './sim-world.ts';
import { Webhooks } from './webhooks.ts';

/** Periods also end without anybody's call. */
const LOOK_MS = 10_000;

export interface SimulatorOptions {
  /** Where its state is kept. */
  readonly folder: string;
  /** Of this machine only: its control calls ask for no key. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** null: nobody listens for webhooks yet; they wait. */
  readonly webhookUrl: () => string | null;
}

interface Running {
  readonly state: SimState;
  readonly server: SimServer;
  readonly webhooks: Webhooks;
  readonly periodEnds: PeriodEnds;
  readonly look: Timer;
}

export class Simulator {
  readonly #options: SimulatorOptions;
  #secrets: SimSecrets | undefined;
  #running: Running | undefined;

  constructor(options: SimulatorOptions) {
    if (!isLoopbackHost(options.host))
      throw new Error(`the simulator listens on this machine only, not ${options.host}`);
    this.#options = options;
  }

  get url(): string {
    if (this.#running === undefined) throw new Error('the simulator does not run');
    const { host } = this.#options;
    return `http://${host.includes(':') ? `[${host.replaceAll(/[[\]]/g, '')}]` : host}:${this.#running.server.port}`;
  }

  /** Known before the start: made at the first use of its folder. */
  get secretKey(): Secret {
    return this.#ownSecrets().secretKey;
  }

  get webhookSecret(): Secret {
    return this.#ownSecrets().webhookSecret;
  }

  async start(): Promise<void> {
    const { folder, clock, webhookUrl } = this.#options;
    const { webhookSecret } = this.#ownSecrets();
    const state = new SimState(folder);
    const world = new SimWorld(state, clock);
    const logger = this.#options.logger.child({ part: 'simulator' });
    const webhooks = new Webhooks({ world, clock, logger, secret: webhookSecret, url: webhookUrl });
    const periodEnds = new PeriodEnds({
      world,
      clock,
      delivered: (ids) => {
        webhooks.kick();
        return webhooks.delivered(ids);
      },
      hasListener: () => webhookUrl() !== null,
    });
    const server = this.#serverOf(world, periodEnds, webhooks);
    try {
      await server.start();
    } catch (error) {
      state.close();
      throw error;
    }
    webhooks.start();
    const lookAround = (): void => {
      state.forgetAnswers(clock.now());
      void periodEnds
        .advance(0)
        .catch((error: unknown) => logger.error({ err: error }, 'the simulator could not end a period'))
        .then(() => webhooks.kick());
    };
    const look = clock.setInterval(lookAround, LOOK_MS);
    this.#running = { state, server, webhooks, periodEnds, look };
    lookAround();
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    running.look.cancel();
    const ended = running.periodEnds.stop();
    await running.server.stop();
    await running.webhooks.stop();
    await ended;
    running.state.close();
  }

  #serverOf(world: SimWorld, periodEnds: PeriodEnds, webhooks: Webhooks): SimServer {
    const { host, port, logger } = this.#options;
    return new SimServer({
      host,
      port,
      logger,
      world,
      periodEnds,
      secretKey: this.secretKey,
      onAnswered: () => webhooks.kick(),
      routes: simRoutes(() => this.url),
    });
  }

  #ownSecrets(): SimSecrets {
    this.#secrets ??= loadSecrets(this.#options.folder);
    return this.#secrets;
  }
}
