// The processor's own pages for one account: payment methods, invoices, cancelling.
import type { PortalOrder, PortalSession } from '@tunnel/contract';
import type { UserActor } from '../service-context.ts';
import type { BillingContext } from './billing-context.ts';
import { withCustomer } from './with-customer.ts';

export const openPortal = async (
  context: BillingContext,
  { userId }: UserActor,
  { return_url: returnUrl }: PortalOrder,
): Promise<PortalSession> => ({
  url: await withCustomer(context, userId, (customerId) => context.processor.openPortal({ customerId, returnUrl })),
});
