// The account's customer at the payment processor, and requests to the processor on the customer's behalf.
import type { InvoiceList, PortalOrder, PortalSession, SetupIntent } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import type { UserActor } from '../shared/service-context.ts';
import { type BillingContext, findAccount } from './billing-account.ts';
import { syncAccount } from './sync-account.ts';

type Context = Pick<BillingContext, 'db' | 'processor' | 'locks'>;

/** Returns the id of the account's customer at the payment processor. The first call creates the customer. */
export const ensureCustomer = async ({ db, processor, locks }: Context, userId: string): Promise<string> => {
  const known = (await findAccount(db, userId))?.customer_id;
  if (known != null) return known;
  return locks.hold(userId, async (trx) => {
    const made = (await findAccount(trx, userId))?.customer_id;
    if (made != null) return made;
    const user = await trx
      .selectFrom('users')
      .select(['email', 'display_name as name'])
      .where('id', '=', userId)
      .where('deleted_at', 'is', null)
      .executeTakeFirst();
    // A request that began before the account's deletion must not create a customer afterwards.
    if (user === undefined) throw new Fault('ACCESS_TOKEN_INVALID');
    const { email, name } = user;
    const customer_id = await processor.ensureCustomer({ userId, email, name });
    await trx
      .insertInto('billing_accounts')
      .values({ user_id: userId, customer_id })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ customer_id }))
      .execute();
    return customer_id;
  });
};

/**
 * Calls the payment processor with the account's customer. If the customer was deleted at the processor, creates a new customer and
 * repeats the call once.
 */
const withCustomer = async <T>(
  context: BillingContext,
  userId: string,
  call: (customerId: string) => Promise<T>,
): Promise<T> => {
  const customerId = await ensureCustomer(context, userId);
  try {
    return await call(customerId);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'BILLING_PROCESSOR_REFUSED') throw error;
    await syncAccount(context, userId);
    const present = await ensureCustomer(context, userId);
    if (present === customerId) throw error;
    return call(present);
  }
};

/**
 * Starts the collection of a payment method, which the browser completes with the client secret. `orderId` is the idempotency key:
 * repeated calls with the same id count as one order.
 */
export const createSetupIntent = async (
  context: BillingContext,
  { userId }: UserActor,
  orderId: string,
): Promise<SetupIntent> => {
  const { clientSecret } = await withCustomer(context, userId, (customerId) =>
    context.processor.createSetupIntent(customerId, sha256Hex(`setup-intent:${customerId}:${orderId}`)),
  );
  return { client_secret: clientSecret };
};

/** Opens a session on the payment processor's customer pages: payment methods, invoices, cancellation. Returns the URL. */
export const openPortal = async (
  context: BillingContext,
  { userId }: UserActor,
  { return_url: returnUrl, flow }: PortalOrder,
): Promise<PortalSession> => ({
  url: await withCustomer(context, userId, (customerId) =>
    context.processor.openPortal({ customerId, returnUrl, flow }),
  ),
});

/** Lists the account's invoices, read from the payment processor. */
export const listInvoices = async (
  { db, processor }: Pick<BillingContext, 'db' | 'processor'>,
  { userId }: UserActor,
): Promise<InvoiceList> => {
  const customerId = (await findAccount(db, userId))?.customer_id;
  return { invoices: customerId == null ? [] : [...(await processor.invoices(customerId))] };
};
