// Customers at the payment processor: one customer per user, with payment methods.
import { sha256Hex } from '@tunnel/runtime';
import type { Stripe } from 'stripe';
import type { CardFacts, CustomerFacts, CustomerOrder, PortalOrder } from './processor.ts';
import { createOnce, isMissing } from './processor-client.ts';
import { newestSubscription } from './subscriptions.ts';

const PAGE = 100;

/** Finds or creates the user's customer. The search comes first, because the processor remembers an idempotency key for only a day. */
export const ensureCustomer = async (stripe: Stripe, order: CustomerOrder): Promise<string> => {
  const found = await stripe.customers.list({ email: order.email, limit: PAGE });
  const known = found.data.find((customer) => customer.metadata['user_id'] === order.userId);
  const customer = known ?? (await createCustomer(stripe, order));
  if (order.name !== null && customer.name !== order.name) {
    await stripe.customers.update(customer.id, { name: order.name });
  }
  return customer.id;
};

/**
 * Creates a customer once per user and email address. A repeated call with the same idempotency key would return the first customer, even
 * if deleted since, so the customer's existence is checked.
 */
const createCustomer = (stripe: Stripe, { userId, email }: CustomerOrder): Promise<Stripe.Customer> =>
  createOnce(
    `customer:${userId}:${sha256Hex(email).slice(0, 16)}`,
    (idempotencyKey) => stripe.customers.create({ email, metadata: { user_id: userId } }, { idempotencyKey }),
    async ({ id }) => (await findCustomer(stripe, id)) !== null,
  );

const findCustomer = async (stripe: Stripe, id: string): Promise<Stripe.Customer | null> => {
  try {
    const customer = await stripe.customers.retrieve(id);
    return customer.deleted === true ? null : customer;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
};

export const createSetupIntent = async (
  stripe: Stripe,
  customerId: string,
  idempotencyKey: string,
): Promise<{ clientSecret: string }> => {
  const intent = await stripe.setupIntents.create(
    {
      customer: customerId,
      usage: 'off_session',
      automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
    },
    { idempotencyKey },
  );
  if (intent.client_secret === null) throw new Error('the setup intent has no client secret');
  return { clientSecret: intent.client_secret };
};

export const readCustomer = async (stripe: Stripe, customerId: string): Promise<CustomerFacts | null> => {
  const customer = await findCustomer(stripe, customerId);
  if (customer === null) return null;
  const [methods, subscription] = await Promise.all([
    stripe.customers.listPaymentMethods(customerId, { limit: PAGE }),
    newestSubscription(stripe, customerId),
  ]);
  // The test clock only matters for the grace period, which is counted here. All other times come from the processor.
  const clockId = subscription?.status === 'past_due' ? idOf(customer.test_clock ?? null) : null;
  const defaultPaymentMethod = idOf(customer.invoice_settings.default_payment_method);
  return {
    email: customer.email,
    defaultPaymentMethod,
    paymentMethods: methods.data.map(({ id }) => id),
    card: cardOf(methods.data.find(({ id }) => defaultPaymentMethod === null || id === defaultPaymentMethod)),
    subscription,
    ...(clockId === null ? {} : { clock: await readClock(stripe, clockId, customerId) }),
  };
};

const cardOf = (method: Stripe.PaymentMethod | undefined): CardFacts | null =>
  method?.card === undefined ? null : { brand: method.card.brand, last4: method.card.last4 };

const readClock = async (
  stripe: Stripe,
  clockId: string,
  customer: string,
): Promise<NonNullable<CustomerFacts['clock']>> => {
  const { frozen_time } = await stripe.testHelpers.testClocks.retrieve(clockId);
  const { data } = await stripe.invoices.list({ customer, status: 'open', limit: PAGE });
  const times = data.flatMap(({ status_transitions }) => status_transitions.finalized_at ?? []);
  return { now: frozen_time * 1000, unpaidSince: times.length === 0 ? null : Math.min(...times) * 1000 };
};

export const setEmail = async (stripe: Stripe, customerId: string, email: string): Promise<void> => {
  await stripe.customers.update(customerId, { email });
};

export const usePaymentMethod = async (stripe: Stripe, customerId: string, methodId: string): Promise<void> => {
  await stripe.customers.update(customerId, { invoice_settings: { default_payment_method: methodId } });
};

/** Opens the payment processor's customer portal and returns its URL, valid for one visit. */
export const openPortal = async (stripe: Stripe, { customerId, returnUrl, flow }: PortalOrder): Promise<string> => {
  const session = await stripe.billingPortal.sessions.create({
    customer: customerId,
    return_url: returnUrl,
    ...(flow === undefined ? {} : { flow_data: cardFlow(returnUrl) }),
  });
  return session.url;
};

const cardFlow = (return_url: string): Stripe.BillingPortal.SessionCreateParams.FlowData => ({
  type: 'payment_method_update',
  after_completion: { type: 'redirect', redirect: { return_url } },
});

const idOf = (reference: string | { readonly id: string } | null): string | null =>
  typeof reference === 'string' ? reference : (reference?.id ?? null);
