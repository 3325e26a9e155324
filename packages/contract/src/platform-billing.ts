// Schemas of billing in the platform API: the state of an account, its spend cap, and links to the payment processor.
import * as z from 'zod';

const cents = z.int().min(0);

/** Path to which the payment processor sends its events. */
export const BILLING_WEBHOOK_PATH = '/billing/webhook';

/** Maximum length of a return URL, equal to the limit of the payment processor. */
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

/** Billing state of an account. The last three fields are additions to the original API, and omitted by older platforms. */
export const billingStatus = z
  .object({
    billing_model: billingModel.meta({ description: 'The billing model. `payg`: pay as you go.', examples: ['payg'] }),
    plan_name: z.string().meta({ examples: ['payg'] }),
    estimated_mtd_cents: cents.meta({
      description:
        'The estimated bill for the current calendar month (UTC) in cents: the monthly minimum or the usage, whichever is larger. 0 on a free plan.',
      examples: [300],
    }),
    spend_cap_cents: cents
      .nullable()
      .meta({ description: "The account's spend limit in cents, or null if no limit is set.", examples: [2000] }),
    subscription_status: subscriptionStatus.nullable().meta({
      description:
        'The state of the subscription, or null if the account never subscribed. `canceled` applies from the cancellation on, even while the paid period lasts.',
      examples: ['active'],
    }),
    current_period_end: z.iso.datetime().nullable().meta({ description: 'The date of the next invoice.' }),
    payment_customer_id: z
      .string()
      .nullable()
      .meta({ description: "The account's customer id at the payment processor.", examples: ['cus_QhJ2mX9vB4kTzR'] }),
    has_payment_method: z.boolean(),
    allow_custom_subdomains: z.boolean().meta({ description: 'Whether the plan allows custom subdomains.' }),
    monthly_minimum_cents: cents.meta({
      description: "The plan's monthly minimum in cents, credited toward usage.",
      examples: [300],
    }),
    payment_method: paymentMethod.nullable().optional().meta({
      description:
        'The card on file at the payment processor. Null without a payment method, or if the payment method is not a card.',
    }),
    test_mode: z
      .boolean()
      .optional()
      .meta({
        description: 'True if payments are simulated: cards are not real, and no money is charged.',
        examples: [false],
      }),
    hidden: z
      .boolean()
      .optional()
      .meta({
        description: 'True if the dashboard hides billing, because payments are simulated on a public platform.',
        examples: [false],
      }),
  })
  .meta({ id: 'BillingStatus' });
export type BillingStatus = z.infer<typeof billingStatus>;

export const billingUsage = z
  .object({
    month: z.string().meta({ description: 'The calendar month (UTC).', examples: ['2030-01'] }),
    metered_bytes: cents.meta({
      description: 'Billable bytes this month, counted from the start of the subscription. 0 on a free plan.',
      examples: [12_345_678_901],
    }),
    usage_cents: cents.meta({ description: 'The cost of the billable bytes in cents, rounded down.', examples: [123] }),
    price_cents_per_gb: cents.meta({
      description: "The plan's price in cents for 10^9 bytes. On a free plan: the price after subscribing.",
      examples: [10],
    }),
    monthly_minimum_cents: cents.meta({
      description: "The plan's monthly minimum in cents. On a free plan: the minimum after subscribing.",
      examples: [300],
    }),
  })
  .meta({ id: 'BillingUsage', description: 'The breakdown of the monthly estimate.' });
export type BillingUsage = z.infer<typeof billingUsage>;

export const startedSubscription = z
  .object({
    status: z.string().meta({
      description: 'The state of the subscription, as `subscription_status` in GET /billing.',
      examples: ['active'],
    }),
    plan: z.string().meta({ examples: ['payg'] }),
    payment_subscription_id: z
      .string()
      .optional()
      .meta({ description: 'The subscription id at the payment processor.', examples: ['sub_1QhJ2mX9vB4kTzR'] }),
  })
  .meta({ id: 'StartedSubscription' });
export type StartedSubscription = z.infer<typeof startedSubscription>;

export const setupIntent = z
  .object({
    client_secret: z.string().meta({
      description: 'The client secret for the payment form in the browser.',
      examples: ['seti_1QhJ2mX9vB4kTzR_secret_RaY8dLw2'],
    }),
  })
  .meta({ id: 'SetupIntent' });
export type SetupIntent = z.infer<typeof setupIntent>;

const address = z.url();

const isWebAddress = (text: string): boolean => {
  // Rejects white space and control characters, because the URL parser would silently remove them.
  if (/[\s\p{Cc}]/u.test(text) || !/^https?:\/\//i.test(text)) return false;
  return text.length <= RETURN_URL_MAX_CHARACTERS && address.safeParse(text).success;
};

export const portalOrder = z
  .object({
    return_url: z
      .string()
      .refine(isWebAddress, { error: 'must be an http or https URL' })
      .meta({
        description: 'The http or https URL to return to from the portal.',
        format: 'uri',
        pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s\\u0000-\\u001f\\u007f-\\u009f]+$',
        maxLength: RETURN_URL_MAX_CHARACTERS,
        examples: ['https://app.example.com/billing'],
      }),
    flow: z
      .literal('payment_method')
      .optional()
      .meta({
        description: '`payment_method`: the portal asks only for a card, then returns automatically.',
        examples: ['payment_method'],
      }),
  })
  .meta({ id: 'PortalOrder' });
export type PortalOrder = z.infer<typeof portalOrder>;

export const portalSession = z
  .object({
    url: z.string().meta({
      description: "The URL of the account's billing portal at the payment processor.",
      format: 'uri',
      examples: ['https://billing.stripe.com/p/session/test_YWNjdF8x'],
    }),
  })
  .meta({ id: 'PortalSession' });
export type PortalSession = z.infer<typeof portalSession>;

export const invoiceList = z
  .object({
    invoices: z.array(z.record(z.string(), z.unknown())).meta({
      description: "The account's invoices at the payment processor, newest first, at most 100.",
      examples: [[]],
    }),
  })
  .meta({ id: 'InvoiceList' });
export type InvoiceList = z.infer<typeof invoiceList>;

const CAP_RULE = `must be a whole number of cents from 0 to ${Number.MAX_SAFE_INTEGER}, or null`;
const capProblem = ({ input }: { readonly input?: unknown }): string =>
  input === undefined ? 'is required; null removes the limit' : CAP_RULE;

export const spendCap = z
  .object({
    spend_cap_cents: z
      .int({ error: capProblem })
      .min(0, { error: CAP_RULE })
      .max(Number.MAX_SAFE_INTEGER, { error: CAP_RULE })
      .nullable()
      .meta({
        description:
          'The spend limit in cents for the usage of a calendar month (UTC). 0 allows no usage; null removes the limit.',
        examples: [2000],
      }),
  })
  .meta({ id: 'SpendCap' });
export type SpendCap = z.infer<typeof spendCap>;

export const receivedEvent = z
  .object({ received: z.literal(true).meta({ description: 'Confirms that the event was processed.' }) })
  .meta({ id: 'ReceivedEvent' });
export type ReceivedEvent = z.infer<typeof receivedEvent>;
