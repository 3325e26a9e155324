// The account's invoices, as the processor has them.
import type { InvoiceList } from '@tunnel/contract';
import type { UserActor } from '../service-context.ts';
import { findAccount } from './billing-account.ts';
import type { BillingContext } from './billing-context.ts';

export const listInvoices = async (
  { db, processor }: Pick<BillingContext, 'db' | 'processor'>,
  { userId }: UserActor,
): Promise<InvoiceList> => {
  const customerId = (await findAccount(db, userId))?.customer_id;
  return { invoices: customerId == null ? [] : [...(await processor.invoices(customerId))] };
};
