// Billing over HTTP.
import { BILLING_WEBHOOK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import { randomToken } from '@tunnel/runtime';
import type { MiddlewareHandler } from 'hono';
import type { BillingContext } from '../../services/billing/billing-context.ts';
import { createSetupIntent } from '../../services/billing/create-setup-intent.ts';
import { listInvoices } from '../../services/billing/list-invoices.ts';
import { openPortal } from '../../services/billing/open-portal.ts';
import { receiveEvent } from '../../services/billing/receive-event.ts';
import { setSpendCap } from '../../services/billing/set-spend-cap.ts';
import { showStatus } from '../../services/billing/show-status.ts';
import { showUsage } from '../../services/billing/show-usage.ts';
import { subscribe } from '../../services/billing/subscribe.ts';
import { once } from '../idempotency.ts';
import type { PlatformApp, PlatformEnv } from '../platform-env.ts';
import {
  invoicesRoute,
  portalRoute,
  setupIntentRoute,
  spendCapRoute,
  statusRoute,
  subscribeRoute,
  usageRoute,
  webhookRoute,
} from './billing-route-list.ts';

export interface BillingRouteNeeds extends BillingContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
}

const SIGNATURE_HEADER = 'stripe-signature';

export const addBillingRoutes = (app: PlatformApp, needs: BillingRouteNeeds): void => {
  app.use('/billing/*', exceptWebhook(needs.requireUser));
  app.openapi(statusRoute, async (context) => context.json(await showStatus(needs, context.get('actor')), 200));
  app.openapi(usageRoute, async (context) => context.json(await showUsage(needs, context.get('actor')), 200));
  app.openapi(invoicesRoute, async (context) => context.json(await listInvoices(needs, context.get('actor')), 200));
  app.openapi(spendCapRoute, async (context) =>
    context.json(await setSpendCap(needs, context.get('actor'), context.req.valid('json')), 200),
  );
  addOrderRoutes(app, needs);
  addWebhookRoute(app, needs);
};

/** The processor shows a signature in place of a token. */
const exceptWebhook =
  (requireUser: MiddlewareHandler<PlatformEnv>): MiddlewareHandler<PlatformEnv> =>
  (context, next) =>
    context.req.path === BILLING_WEBHOOK_PATH ? next() : requireUser(context, next);

const addOrderRoutes = (app: PlatformApp, needs: BillingRouteNeeds): void => {
  app.openapi(subscribeRoute, async (context) => {
    const carryOut = () => subscribe(needs, context.get('actor'));
    return context.json(await once(needs, context, { operation: 'subscribe', carryOut }), 200);
  });
  app.openapi(setupIntentRoute, async (context) => {
    const carryOut = (key: string | null) => createSetupIntent(needs, context.get('actor'), key ?? randomToken());
    return context.json(await once(needs, context, { operation: 'setup-intent', carryOut }), 200);
  });
  app.openapi(portalRoute, async (context) => {
    const input = context.req.valid('json');
    const carryOut = () => openPortal(needs, context.get('actor'), input);
    return context.json(await once(needs, context, { operation: 'portal', input, carryOut }), 200);
  });
};

const addWebhookRoute = (app: PlatformApp, needs: BillingRouteNeeds): void => {
  app.openAPIRegistry.registerPath(webhookRoute);
  app.post(BILLING_WEBHOOK_PATH, async (context) => {
    const signature = headerOf(context, SIGNATURE_HEADER);
    if (signature === undefined) throw new Fault('WEBHOOK_SIGNATURE');
    await receiveEvent(needs, { body: new Uint8Array(await context.req.arrayBuffer()), signature });
    return context.json({ received: true }, 200);
  });
};
