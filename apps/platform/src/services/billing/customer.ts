// The account's customer at the processor, and what is asked there in its name.
import type { InvoiceList, PortalOrder, PortalSession, SetupIntent } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import type { UserActor } from '../shared/service-context.ts';
import { type BillingContext, findAccount } from './billing-account.ts';
import { syncAccount } from './sync-account.ts';

type Context = Pick<BillingContext, 'db' | 'processor' | 'locks'>;

/** The account's customer at the processor, made at the first call that needs one. */
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
    // A request that began before the deletion makes nothing after it.
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

/** A call to the processor about the account's customer. One that was deleted there is made anew, once. */
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
 * Begins to collect a payment method: the browser finishes it with the client secret. `orderId`: the same for the same order,
 * however often it is sent.
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

/** The processor's own pages for one account: payment methods, invoices, cancelling. */
export const openPortal = async (
  context: BillingContext,
  { userId }: UserActor,
  { return_url: returnUrl, flow }: PortalOrder,
): Promise<PortalSession> => ({
  url: await withCustomer(context, userId, (customerId) =>
    context.processor.openPortal({ customerId, returnUrl, flow }),
  ),
});

/** The account's invoices, as the processor has them. */
export const listInvoices = async (
  { db, processor }: Pick<BillingContext, 'db' | 'processor'>,
  { userId }: UserActor,
): Promise<InvoiceList> => {
  const customerId = (await findAccount(db, userId))?.customer_id;
  return { invoices: customerId == null ? [] : [...(await processor.invoices(customerId))] };
};
