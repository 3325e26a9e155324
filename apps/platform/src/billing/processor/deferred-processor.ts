// A processor that is made at its first call: the simulator has a key and an address only once it runs.
import type { Processor } from './processor.ts';

export const deferredProcessor = (make: () => Processor): Processor => {
  let made: Processor | undefined;
  const there = (): Processor => (made ??= make());
  return {
    ensureCustomer: async (user) => there().ensureCustomer(user),
    createSetupIntent: async (customerId, key) => there().createSetupIntent(customerId, key),
    readCustomer: async (customerId) => there().readCustomer(customerId),
    usePaymentMethod: async (customerId, methodId) => there().usePaymentMethod(customerId, methodId),
    subscribe: async (order) => there().subscribe(order),
    keepSubscription: async (subscriptionId) => there().keepSubscription(subscriptionId),
    setFinalMinimum: async (order) => there().setFinalMinimum(order),
    reportUsage: async (event) => there().reportUsage(event),
    meteredBytes: async (range) => there().meteredBytes(range),
    openPortal: async (order) => there().openPortal(order),
    invoices: async (customerId) => there().invoices(customerId),
    readEvent: async (rawBody, signature) => there().readEvent(rawBody, signature),
  };
};
