// Runs against Stripe in test mode: STRIPE_TEST_KEY=sk_test_… npx vitest run apps/platform/src/billing/processor
import { createLogger, Secret } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import { describe } from 'vitest';
import { createProcessor } from './create-processor.ts';
import { describeProcessor } from './processor.conformance.ts';

const key = process.env['STRIPE_TEST_KEY'] ?? '';

describe.skipIf(!key.startsWith('sk_test_'))('Stripe with a test key', () => {
  describeProcessor('the real one', async () => {
    const stripe = new Stripe(key, { telemetry: false });
    const webhookSecret = new Secret('whsec_of_this_test');
    return {
      processor: createProcessor({
        secretKey: new Secret(key),
        webhookSecret: () => webhookSecret,
        apiUrl: () => 'https://api.stripe.com',
        prices: { minimumCents: 300, priceCentsPerGb: 10 },
        logger: createLogger({ format: 'json', level: 'silent' }),
      }),
      webhookSecret,
      confirm: async (clientSecret, card) => {
        const [id = ''] = clientSecret.split('_secret_');
        const payment_method = card === 'good' ? 'pm_card_visa' : 'pm_card_visa_chargeDeclined';
        await stripe.setupIntents.confirm(id, { payment_method });
      },
      setToEnd: async (id) => void (await stripe.subscriptions.update(id, { cancel_at_period_end: true })),
      waitingItems: async (customer) => (await stripe.invoiceItems.list({ customer, pending: true })).data.length,
      sumsWithinMs: 120_000,
      close: async () => {},
    };
  });
});
