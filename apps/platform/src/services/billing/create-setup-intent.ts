// Begins to collect a payment method: the browser finishes it with the client secret.
import type { SetupIntent } from '@tunnel/contract';
import { sha256Hex } from '@tunnel/runtime';
import type { UserActor } from '../service-context.ts';
import type { BillingContext } from './billing-context.ts';
import { withCustomer } from './with-customer.ts';

/** `orderId`: the same for the same order, however often it is sent. */
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
