// A local simulator of the payment processor: its server, state and lifecycle. Speaks the processor's API to the same SDK, so that the
// platform runs the same code in production.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLoopbackHost } from '@tunnel/rules/net';
import { type Clock, type Logger, randomToken, Secret, type Timer, writeAtomicSync } from '@tunnel/runtime';
import * as z from 'zod';
import { apiRoutes } from './api/api.ts';
import { BillingCycle } from './api/billing-cycle.ts';
import { Sandbox } from './state/sandbox.ts';
import { Store } from './state/store.ts';
import { HttpServer } from './web/http-server.ts';
import { Webhooks } from './web/webhooks.ts';

/** Interval of checks for ended billing periods, because periods also end without a call. */
const LOOK_MS = 10_000;

export interface SimulatorOptions {
  /** Folder in which the simulator stores its state. */
  readonly folder: string;
  /** Host to listen on: loopback only, because control calls need no key. */
  readonly host: string;
  /** Port to listen on. 0 picks a free port. */
  readonly port: number;
  /** Name of the port setting in messages: a configuration key or a flag. */
  readonly portKey: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns null while the platform does not listen for webhooks. Then events wait. */
  readonly webhookUrl: () => string | null;
}

interface Running {
  readonly store: Store;
  readonly server: HttpServer;
  readonly webhooks: Webhooks;
  readonly billingCycle: BillingCycle;
  readonly look: Timer;
}

export class Simulator {
  readonly #options: SimulatorOptions;
  #secrets: SimulatorSecrets | undefined;
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

  /** API key of the simulator. Available before the start: created at the first use of the folder. */
  get secretKey(): Secret {
    return this.#ownSecrets().secretKey;
  }

  get webhookSecret(): Secret {
    return this.#ownSecrets().webhookSecret;
  }

  async start(): Promise<void> {
    const { folder, clock, webhookUrl } = this.#options;
    const { webhookSecret } = this.#ownSecrets();
    const store = new Store(folder);
    const sandbox = new Sandbox(store, clock);
    const logger = this.#options.logger.child({ part: 'simulator' });
    const webhooks = new Webhooks({ sandbox, clock, logger, secret: webhookSecret, url: webhookUrl });
    const billingCycle = new BillingCycle({
      sandbox,
      clock,
      delivered: (ids) => {
        webhooks.kick();
        return webhooks.delivered(ids);
      },
      hasListener: () => webhookUrl() !== null,
    });
    const server = this.#serverOf(sandbox, billingCycle, webhooks);
    try {
      await server.start();
    } catch (error) {
      store.close();
      throw error;
    }
    webhooks.start();
    const lookAround = (): void => {
      store.forgetAnswers(clock.now());
      void billingCycle
        .advance(0)
        .catch((error: unknown) => logger.error({ err: error }, 'the simulator could not end a period'))
        .then(() => webhooks.kick());
    };
    const look = clock.setInterval(lookAround, LOOK_MS);
    this.#running = { store, server, webhooks, billingCycle, look };
    lookAround();
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    running.look.cancel();
    const ended = running.billingCycle.stop();
    await running.server.stop();
    await running.webhooks.stop();
    await ended;
    running.store.close();
  }

  #serverOf(sandbox: Sandbox, billingCycle: BillingCycle, webhooks: Webhooks): HttpServer {
    const { host, port, portKey, logger } = this.#options;
    return new HttpServer({
      host,
      port,
      portKey,
      logger,
      sandbox,
      billingCycle,
      secretKey: this.secretKey,
      onAnswered: () => webhooks.kick(),
      routes: apiRoutes(() => this.url),
    });
  }

  #ownSecrets(): SimulatorSecrets {
    this.#secrets ??= loadSecrets(this.#options.folder);
    return this.#secrets;
  }
}

// API key and webhook secret of the simulator, created once and stored in a separate file that only the owner can read.

const secretsShape = z.strictObject({ secret_key: z.string().min(20), webhook_secret: z.string().min(20) });

interface SimulatorSecrets {
  readonly secretKey: Secret;
  readonly webhookSecret: Secret;
}

const loadSecrets = (folder: string): SimulatorSecrets => {
  const path = join(folder, 'secrets.json');
  const { secret_key, webhook_secret } = readSecrets(path) ?? makeSecrets(folder, path);
  return { secretKey: new Secret(secret_key), webhookSecret: new Secret(webhook_secret) };
};

const readSecrets = (path: string): z.output<typeof secretsShape> | null => {
  try {
    return secretsShape.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path}: the secrets of the simulator cannot be read`, { cause: error });
  }
};

const makeSecrets = (folder: string, path: string): z.output<typeof secretsShape> => {
  const made = { secret_key: `sk_test_sim_${randomToken()}`, webhook_secret: `whsec_sim_${randomToken()}` };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeAtomicSync(path, `${JSON.stringify(made)}\n`, { soleWriter: true });
  return made;
};
