// The parts of billing, joined: the processor that the configuration names, the simulator when it is that, and metering.
import { join } from 'node:path';
import { BILLING_WEBHOOK_PATH } from '@tunnel/contract';
import type { Clock, Logger, ServerConfig } from '@tunnel/runtime';
import type { Db } from '../db/database.ts';
import { AccountLocks } from '../services/billing/account-locks.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import { Metering } from './metering/metering.ts';
import { createProcessor } from './processor/create-processor.ts';
import type { Processor } from './processor/processor.ts';
import { processorAway } from './processor/processor-client.ts';
import { Simulator } from './simulator/simulator.ts';

export interface BillingOptions {
  readonly settings: ServerConfig['platform'];
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dataDir: string;
  /** Where the platform listens; null: not yet, or not any more. */
  readonly address: () => { readonly host: string; readonly port: number } | null;
}

const LOOPBACK = '127.0.0.1';
/** Addresses to listen on that nobody can be called at. */
const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': LOOPBACK, '::': '::1' };

export class Billing {
  /** null: the processor is elsewhere. */
  readonly simulator: Simulator | null;
  readonly metering: Metering;
  readonly context: BillingContext;

  constructor(options: BillingOptions) {
    const { settings, db, clock, logger } = options;
    this.simulator = settings.billing.processor === 'simulator' ? makeSimulator(options) : null;
    const processor = makeProcessor(options, this.simulator);
    this.metering = new Metering({ db, clock, logger, processor });
    const locks = new AccountLocks({ db, clock });
    this.context = { db, clock, logger, settings, processor, locks, metering: this.metering };
  }
}

const makeSimulator = ({ settings, clock, logger, dataDir, address }: BillingOptions): Simulator =>
  new Simulator({
    folder: join(dataDir, 'simulator'),
    host: LOOPBACK,
    port: settings.billing.simulator_port,
    ...{ clock, logger },
    webhookUrl: () => webhookUrl(address()),
  });

const webhookUrl = (address: ReturnType<BillingOptions['address']>): string | null => {
  if (address === null) return null;
  const host = EVERYWHERE[address.host] ?? address.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}${BILLING_WEBHOOK_PATH}`;
};

const makeProcessor = ({ settings, logger }: BillingOptions, simulator: Simulator | null): Processor => {
  const { payg } = settings.plans;
  const prices = {
    minimumCents: payg?.monthly_minimum_cents ?? 0,
    priceCentsPerGb: payg?.price_cents_per_gb ?? 0,
  };
  if (simulator !== null) {
    return createProcessor({
      ...{ secretKey: simulator.secretKey, prices, logger },
      webhookSecret: () => simulator.webhookSecret,
      apiUrl: () => urlOf(simulator),
    });
  }
  const { stripe_secret_key: secretKey, stripe_webhook_secret, stripe_api_url } = settings.billing;
  return createProcessor({
    ...{ secretKey, prices, logger },
    webhookSecret: () => stripe_webhook_secret,
    apiUrl: () => stripe_api_url,
  });
};

/** One that has stopped, or has not started, is a processor that is away. */
const urlOf = (simulator: Simulator): string => {
  try {
    return simulator.url;
  } catch (error) {
    throw processorAway(error instanceof Error ? error.message : String(error));
  }
};
