// The payment processor's stand-in on this machine: its server, its state and its life.
import type { Clock, Logger, Secret } from '@tunnel/runtime';

export interface SimulatorOptions {
  /** Where its state is kept. */
  readonly folder: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** null: nobody listens for webhooks yet; they wait. */
  readonly webhookUrl: () => string | null;
}

export class Simulator {
  constructor(_options: SimulatorOptions) {
    throw new Error('not made yet');
  }

  get url(): string {
    throw new Error('not made yet');
  }

  get secretKey(): Secret {
    throw new Error('not made yet');
  }

  get webhookSecret(): Secret {
    throw new Error('not made yet');
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}
}
