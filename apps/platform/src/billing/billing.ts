// Creates and connects the parts of billing: the payment processor (the configured processor, or the given simulator), account locks and
// metering.

import { type ServerConfig } from '@tunnel/config/server';
import { type Clock, type Logger, randomToken, Secret } from '@tunnel/runtime';
import type { Db } from '../db/database.ts';
import { AccountLocks } from './account-locks.ts';
import { Metering } from './metering/metering.ts';
import { createProcessor, type ProcessorOptions } from './processor/create-processor.ts';
import type { Processor } from './processor/processor.ts';
import { processorAway } from './processor/processor-client.ts';

/** Address of a payment processor, and the secrets shared with it. `apiUrl` throws while the processor is not running. */
export type ProcessorAccess = Pick<ProcessorOptions, 'secretKey' | 'webhookSecret' | 'apiUrl'>;

export interface BillingOptions {
  readonly settings: ServerConfig['platform'];
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Access to the simulator. Required if the configuration sets the processor to `simulator`. */
  readonly simulator?: ProcessorAccess;
}

export class Billing {
  readonly processor: Processor;
  readonly locks: AccountLocks;
  readonly metering: Metering;

  constructor(options: BillingOptions) {
    const { db, clock, logger } = options;
    this.processor = makeProcessor(options);
    this.locks = new AccountLocks({ db, clock });
    this.metering = new Metering({ db, clock, logger, processor: this.processor });
  }
}

const makeProcessor = (options: BillingOptions): Processor => {
  const { payg } = options.settings.plans;
  const prices = {
    minimumCents: payg?.monthly_minimum_cents ?? 0,
    priceCentsPerGb: payg?.price_cents_per_gb ?? 0,
  };
  return createProcessor({ ...accessOf(options), prices, logger: options.logger });
};

const accessOf = ({ settings, simulator = nobody() }: BillingOptions): ProcessorAccess => {
  const { processor, stripe_secret_key: secretKey, stripe_webhook_secret, stripe_api_url } = settings.billing;
  if (processor === 'simulator') return { ...simulator, apiUrl: () => urlOf(simulator) };
  return { secretKey, webhookSecret: () => stripe_webhook_secret, apiUrl: () => stripe_api_url };
};

/** Access to a simulator that was not given. The random secret matches no webhook signature, and `apiUrl` always throws. */
const nobody = (): ProcessorAccess => {
  const secret = new Secret(randomToken());
  return {
    secretKey: secret,
    webhookSecret: () => secret,
    apiUrl: () => {
      throw new Error('the payment simulator is not running');
    },
  };
};

/** Returns the simulator's URL. A simulator that is not running counts as an unavailable processor. */
const urlOf = ({ apiUrl }: ProcessorAccess): string => {
  try {
    return apiUrl();
  } catch (error) {
    throw processorAway(error instanceof Error ? error.message : String(error));
  }
};
