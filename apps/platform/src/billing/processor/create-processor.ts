// Creates the configured payment processor. The real processor and the simulator share the same code and differ only in the URL.
import type { Logger, Secret } from '@tunnel/runtime';
import {
  createSetupIntent,
  ensureCustomer,
  openPortal,
  readCustomer,
  setEmail,
  usePaymentMethod,
} from './customers.ts';
import { readEvent } from './events.ts';
import { type PriceList, Prices } from './prices.ts';
import type { Processor } from './processor.ts';
import { ProcessorClient } from './processor-client.ts';
import { endSubscriptions, keepSubscription, setFinalMinimum, subscribe } from './subscriptions.ts';
import { meteredBytes, reportUsage } from './usage.ts';

export interface ProcessorOptions {
  readonly secretKey: Secret;
  /** Returns the webhook secret. Called at every use, because the simulator's secret is known only after its start. */
  readonly webhookSecret: () => Secret;
  readonly apiUrl: () => string;
  readonly prices: PriceList;
  readonly logger: Logger;
}

const INVOICES_SHOWN = 100;

export const createProcessor = (options: ProcessorOptions): Processor => {
  const client = new ProcessorClient(options);
  const prices = new Prices(options.prices);
  const { minimumCents } = options.prices;
  return {
    ensureCustomer: (user) => client.call('ensure customer', (stripe) => ensureCustomer(stripe, user)),
    createSetupIntent: (customerId, key) =>
      client.call('create setup intent', (stripe) => createSetupIntent(stripe, customerId, key)),
    readCustomer: (customerId) => client.call('read customer', (stripe) => readCustomer(stripe, customerId)),
    setEmail: (customerId, email) => client.call('set email', (stripe) => setEmail(stripe, customerId, email)),
    usePaymentMethod: (customerId, methodId) =>
      client.call('use payment method', (stripe) => usePaymentMethod(stripe, customerId, methodId)),
    subscribe: (order) => client.call('subscribe', (stripe) => subscribe(stripe, prices, order)),
    keepSubscription: (id) => client.call('keep subscription', (stripe) => keepSubscription(stripe, id)),
    endSubscriptions: (customerId) =>
      client.call('end subscriptions', (stripe) => endSubscriptions(stripe, customerId)),
    setFinalMinimum: (order) =>
      client.call('set final minimum', (stripe) => setFinalMinimum(stripe, minimumCents, order)),
    reportUsage: (event) => client.call('report usage', (stripe) => reportUsage(stripe, prices, event)),
    meteredBytes: (range) => client.call('sum usage', (stripe) => meteredBytes(stripe, prices, range)),
    openPortal: (order) => client.call('open portal', (stripe) => openPortal(stripe, order)),
    invoices: (customerId) =>
      client.call('list invoices', async (stripe) => {
        const { data } = await stripe.invoices.list({ customer: customerId, limit: INVOICES_SHOWN });
        return data.map((invoice) => ({ ...invoice }));
      }),
    readEvent: async (rawBody, signature) => readEvent(rawBody, signature, options.webhookSecret()),
  };
};
