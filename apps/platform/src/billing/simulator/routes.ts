// Every call of the processor's that the stand-in takes: those that our code makes, and no more.
import { customerRoutes } from './resources/customers.ts';
import { invoiceItemRoutes } from './resources/invoice-items.ts';
import { invoiceRoutes } from './resources/invoices.ts';
import { meterEventRoutes } from './resources/meter-events.ts';
import { meterRoutes } from './resources/meters.ts';
import { portalRoutes } from './resources/portal.ts';
import { priceRoutes } from './resources/prices.ts';
import { setupIntentRoutes } from './resources/setup-intents.ts';
import { subscriptionRoutes } from './resources/subscriptions.ts';
import type { Route } from './route.ts';

export const simRoutes = (baseUrl: () => string): readonly Route[] => [
  ...customerRoutes,
  ...setupIntentRoutes,
  ...meterRoutes,
  ...meterEventRoutes,
  ...priceRoutes,
  ...subscriptionRoutes,
  ...invoiceItemRoutes,
  ...invoiceRoutes,
  ...portalRoutes(baseUrl),
];
