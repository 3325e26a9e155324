// Billing in the platform API: the state of an account, its spend cap, and the doors to the payment processor.
import * as z from 'zod';

const cents = z.int().min(0);

/** Where the payment processor sends its events. */
export const BILLING_WEBHOOK_PATH = '/billing/webhook';

/** As the processor's own forms have it. */
export const RETURN_URL_MAX_CHARACTERS = 5000;

export const billingModel = z.enum(['free', 'payg']);
export type BillingModel = z.infer<typeof billingModel>;

export const subscriptionStatus = z.enum(['active', 'past_due', 'canceled']);
export type SubscriptionStatus = z.infer<typeof subscriptionStatus>;

const paymentMethod = z
  .object({
    brand: z.string().meta({ examples: ['visa'] }),
    last4: z.string().meta({ examples: ['4242'] }),
  })
  .meta({ id: 'PaymentMethod' });

/** The last three fields are ours, and absent at a platform that does not know them yet. */
export const billingStatus = z
  .object({
    billing_model: billingModel.meta({ description: '`payg`: usage is paid for.', examples: ['payg'] }),
    plan_name: z.string().meta({ examples: ['payg'] }),
    estimated_mtd_cents: cents.meta({
      description: 'What this calendar month (UTC) comes to so far: the larger of minimum and usage; 0 on a free plan.',
      examples: [300],
    }),
    spend_cap_cents: cents.nullable().meta({ description: 'null: no cap.', examples: [2000] }),
    subscription_status: subscriptionStatus.nullable().meta({
      description: 'null: there was never one. `canceled` while it runs to the end of its period, and after.',
      examples: ['active'],
    }),
    current_period_end: z.iso.datetime().nullable().meta({ description: 'When the next invoice is made.' }),
    payment_customer_id: z
      .string()
      .nullable()
      .meta({ description: 'Of the account at the payment processor.', examples: ['cus_QhJ2mX9vB4kTzR'] }),
    has_payment_method: z.boolean(),
    allow_custom_subdomains: z.boolean().meta({ description: 'Of the plan.' }),
    monthly_minimum_cents: cents.meta({ description: 'Of the plan; it is credited toward usage.', examples: [300] }),
    payment_method: paymentMethod.nullable().optional().meta({
      description: 'The card that is charged, as far as the payment processor tells it; null: none, or not a card.',
    }),
    test_mode: z
      .boolean()
      .optional()
      .meta({
        description: 'Payments are simulated: no card is real and nothing is charged.',
        examples: [false],
      }),
    hidden: z
      .boolean()
      .optional()
      .meta({
        description: 'The dashboard shows no billing: payments are simulated, and the platform is public.',
        examples: [false],
      }),
  })
  .meta({ id: 'BillingStatus' });
export type BillingStatus = z.infer<typeof billingStatus>;

export const billingUsage = z
  .object({
    month: z.string().meta({ description: 'The calendar month (UTC).', examples: ['2030-01'] }),
    metered_bytes: cents.meta({
      description: 'Carried in this month so far, since the subscription began; 0 on a free plan.',
      examples: [12_345_678_901],
    }),
    usage_cents: cents.meta({ description: 'What they cost, rounded down once.', examples: [123] }),
    price_cents_per_gb: cents.meta({
      description: 'For 10^9 bytes, of the plan; on a free plan what it would be with a subscription.',
      examples: [10],
    }),
    monthly_minimum_cents: cents.meta({ description: 'As the price.', examples: [300] }),
  })
  .meta({ id: 'BillingUsage', description: 'What the estimate of the month is made of.' });
export type BillingUsage = z.infer<typeof billingUsage>;

export const startedSubscription = z
  .object({
    status: z.string().meta({ description: 'As `subscription_status` of GET /billing.', examples: ['active'] }),
    plan: z.string().meta({ examples: ['payg'] }),
    payment_subscription_id: z
      .string()
      .optional()
      .meta({ description: 'At the payment processor.', examples: ['sub_1QhJ2mX9vB4kTzR'] }),
  })
  .meta({ id: 'StartedSubscription' });
export type StartedSubscription = z.infer<typeof startedSubscription>;

export const setupIntent = z
  .object({
    client_secret: z.string().meta({
      description: 'For the form in the browser that collects a payment method.',
      examples: ['seti_1QhJ2mX9vB4kTzR_secret_RaY8dLw2'],
    }),
  })
  .meta({ id: 'SetupIntent' });
export type SetupIntent = z.infer<typeof setupIntent>;

const address = z.url();

const isWebAddress = (text: string): boolean => {
  // The parser would drop what is around and within it.
  if (/[\s\p{Cc}]/u.test(text) || !/^https?:\/\//i.test(text)) return false;
  return text.length <= RETURN_URL_MAX_CHARACTERS && address.safeParse(text).success;
};

export const portalOrder = z
  .object({
    return_url: z
      .string()
      .refine(isWebAddress, { error: 'must be an http or https address' })
      .meta({
        description: 'Where the portal leads back to; http or https.',
        format: 'uri',
        pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s\\u0000-\\u001f\\u007f-\\u009f]+$',
        maxLength: RETURN_URL_MAX_CHARACTERS,
        examples: ['https://app.example.com/billing'],
      }),
    flow: z
      .literal('payment_method')
      .optional()
      .meta({
        description: '`payment_method`: the portal asks for a card alone, and leads back by itself when it has one.',
        examples: ['payment_method'],
      }),
  })
  .meta({ id: 'PortalOrder' });
export type PortalOrder = z.infer<typeof portalOrder>;

export const portalSession = z
  .object({
    url: z.string().meta({
      description: "The processor's billing portal, for this account.",
      format: 'uri',
      examples: ['https://billing.stripe.com/p/session/test_YWNjdF8x'],
    }),
  })
  .meta({ id: 'PortalSession' });
export type PortalSession = z.infer<typeof portalSession>;

export const invoiceList = z
  .object({
    invoices: z.array(z.record(z.string(), z.unknown())).meta({
      description: 'As the payment processor has them, newest first, at most 100.',
      examples: [[]],
    }),
  })
  .meta({ id: 'InvoiceList' });
export type InvoiceList = z.infer<typeof invoiceList>;

const CAP_RULE = `must be a whole number of cents from 0 to ${Number.MAX_SAFE_INTEGER}, or null`;
const capProblem = ({ input }: { readonly input?: unknown }): string =>
  input === undefined ? 'is missing; null removes the cap' : CAP_RULE;

export const spendCap = z
  .object({
    spend_cap_cents: z
      .int({ error: capProblem })
      .min(0, { error: CAP_RULE })
      .max(Number.MAX_SAFE_INTEGER, { error: CAP_RULE })
      .nullable()
      .meta({
        description: 'Of the usage of a calendar month (UTC); 0 allows none, null removes it.',
        examples: [2000],
      }),
  })
  .meta({ id: 'SpendCap' });
export type SpendCap = z.infer<typeof spendCap>;

export const receivedEvent = z
  .object({ received: z.literal(true).meta({ description: 'It was dealt with, and need not be sent again.' }) })
  .meta({ id: 'ReceivedEvent' });
export type ReceivedEvent = z.infer<typeof receivedEvent>;
