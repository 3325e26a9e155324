// The fixed price is charged at the end of each month for the one to come, which stands for the month that ended. A subscription
// that ends has no month to come: its minimum is put on the last invoice as an item of its own.
import type { Stripe } from 'stripe';
import { createAnew } from './create-anew.ts';
import { CURRENCY } from './prices.ts';
import type { FinalMinimumOrder } from './processor.ts';
import { isMissing } from './processor-fault.ts';

const KIND = 'final-minimum';
const PAGE = 100;

export const setFinalMinimum = async (
  stripe: Stripe,
  minimumCents: number,
  order: FinalMinimumOrder,
): Promise<void> => {
  if (minimumCents === 0) return;
  const key = keyOf(order);
  const { data } = await stripe.invoiceItems.list({ customer: order.customerId, limit: PAGE });
  const present = data.filter(({ metadata }) => metadata?.['kind'] === KIND && metadata['key'] === key);
  if (order.wanted) {
    if (present.length === 0) await addItem(stripe, minimumCents, order, key);
    return;
  }
  // One that is on an invoice already stands for a month that has ended.
  for (const item of present.filter(({ invoice }) => invoice === null)) await removeItem(stripe, item.id);
};

const keyOf = ({ subscriptionId, periodEnd }: FinalMinimumOrder): string =>
  `${KIND}:${subscriptionId}:${Math.floor(periodEnd / 1000)}`;

const addItem = async (stripe: Stripe, cents: number, order: FinalMinimumOrder, key: string): Promise<void> => {
  const place = await placeOf(stripe, order);
  if (place === null) return;
  const params = {
    ...place,
    customer: order.customerId,
    amount: cents,
    currency: CURRENCY,
    description: 'Monthly minimum of the last month (credited toward usage)',
    metadata: { kind: KIND, key },
  };
  await createAnew(
    key,
    (idempotencyKey) => stripe.invoiceItems.create(params, { idempotencyKey }),
    ({ id }) => isPresent(stripe, id),
  );
};

/** Nothing waits for a subscription that has ended: its last invoice takes items until it is final. */
const placeOf = async (
  stripe: Stripe,
  { customerId: customer, subscriptionId: subscription, hasEnded }: FinalMinimumOrder,
): Promise<{ readonly subscription: string } | { readonly invoice: string } | null> => {
  if (!hasEnded) return { subscription };
  const { data } = await stripe.invoices.list({ customer, subscription, status: 'draft', limit: 1 });
  return data[0] === undefined ? null : { invoice: data[0].id };
};

const isPresent = async (stripe: Stripe, id: string): Promise<boolean> => {
  try {
    const item: { readonly deleted?: unknown } = await stripe.invoiceItems.retrieve(id);
    return item.deleted !== true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
};

const removeItem = async (stripe: Stripe, id: string): Promise<void> => {
  try {
    await stripe.invoiceItems.del(id);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
};
