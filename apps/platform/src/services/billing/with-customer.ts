// A call to the processor about the account's customer. One that was deleted there is made anew, once.
import { Fault } from '@tunnel/errors';
import type { BillingContext } from './billing-context.ts';
import { ensureCustomer } from './ensure-customer.ts';
import { syncAccount } from './sync-account.ts';

export const withCustomer = async <T>(
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
