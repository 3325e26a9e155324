// Routes for billing.
import { createRoute, z } from '@hono/zod-openapi';
import {
  BILLING_WEBHOOK_PATH,
  billingStatus,
  billingUsage,
  invoiceList,
  portalOrder,
  portalSession,
  receivedEvent,
  setupIntent,
  spendCap,
  startedSubscription,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import { randomToken } from '@tunnel/runtime';
import type { MiddlewareHandler } from 'hono';
import { LIMITS } from '../../../limits.ts';
import type { BillingContext } from '../../../services/billing/billing-account.ts';
import { createSetupIntent, listInvoices, openPortal } from '../../../services/billing/customer.ts';
import { receiveEvent } from '../../../services/billing/receive-event.ts';
import { setSpendCap } from '../../../services/billing/spend-cap.ts';
import { showStatus, showUsage } from '../../../services/billing/status.ts';
import { subscribe } from '../../../services/billing/subscribe.ts';
import { IDEMPOTENCY_KEY_MAX_CHARACTERS, once } from '../../shared/idempotency.ts';
import type { PlatformApp, PlatformEnv, UserRoutes } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, jsonBody, refused, userRoutes } from '../../shared/route-parts.ts';

const userRoute = userRoutes('billing');
const extensionRoute = userRoutes('billing', EXTENSIONS);

const processorRefused = refused('The payment processor rejected the request.', 'BILLING_PROCESSOR_REFUSED', {
  reason: 'Your card was declined.',
});
const processorAway = refused(
  'The payment processor or the database is not available, or another request of the account is in progress; see Retry-After.',
  'BILLING_PROCESSOR_AWAY',
);
const atTheProcessor = { 502: processorRefused, 503: processorAway };

const keyLimit = { limit: IDEMPOTENCY_KEY_MAX_CHARACTERS };
const keyRefusals = {
  400: refused('The Idempotency-Key is not valid.', 'IDEMPOTENCY_KEY_INVALID', keyLimit),
  409: {
    ...refused(
      'The Idempotency-Key was used for a different request, or the first request is still in progress.',
      'IDEMPOTENCY_KEY_REUSED',
    ),
    headers: { 'retry-after': { $ref: '#/components/headers/retry-after' } as never },
  },
};

/** Header for the API documentation. The header is optional, so a request without it is valid. */
const keyHeader = z.object({
  'idempotency-key': z
    .string()
    .optional()
    .meta({
      description: 'A repeated request with the same key runs once and gets the same response for 24 hours.',
      minLength: 1,
      maxLength: IDEMPOTENCY_KEY_MAX_CHARACTERS,
      pattern: '^[ -~]+$',
      examples: ['9b6f1c1e-7a51-4a8f-9a0c-2f6f3f1d8f55'],
    }),
});

const statusRoute = userRoute('get', '/billing', {
  summary: 'Get the billing status: plan, monthly estimate, spend limit, subscription',
  responses: { 200: json(billingStatus, 'The status. Available even if the payment processor cannot be reached.') },
});

const usageRoute = extensionRoute('get', '/billing/usage', {
  summary: 'Get the breakdown of the monthly estimate: bytes, cents, prices',
  responses: { 200: json(billingUsage, 'The breakdown. Available even if the payment processor cannot be reached.') },
});

const subscribeRoute = userRoute('post', '/billing/subscribe', {
  summary: 'Start the pay-as-you-go subscription',
  description:
    'The monthly minimum is credited toward usage. An active subscription is returned unchanged; a canceled subscription that has not ended is kept.',
  request: { headers: keyHeader },
  responses: {
    200: json(startedSubscription, 'The subscription.'),
    ...keyRefusals,
    400: refused('No payment method is on file; use POST /billing/setup-intent.', 'BILLING_NO_PAYMENT_METHOD'),
    ...atTheProcessor,
  },
});

const setupIntentRoute = userRoute('post', '/billing/setup-intent', {
  summary: 'Start collecting a payment method in a browser',
  request: { headers: keyHeader },
  responses: {
    200: json(setupIntent, "The client secret for the payment processor's form."),
    ...keyRefusals,
    ...atTheProcessor,
  },
});

const portalRoute = userRoute('post', '/billing/portal', {
  summary: "Create a link to the payment processor's billing portal",
  request: { headers: keyHeader, body: jsonBody(portalOrder) },
  responses: {
    200: json(portalSession, 'A link for a single visit.'),
    ...keyRefusals,
    400: refused('The return URL is missing or not an http or https URL.', 'API_BAD_REQUEST', {
      reason: 'return_url: must be an http or https URL',
    }),
    ...atTheProcessor,
  },
});

const invoicesRoute = userRoute('get', '/billing/invoices', {
  summary: 'List invoices, newest first',
  responses: { 200: json(invoiceList, 'The invoices; an empty list if there are none.'), ...atTheProcessor },
});

const spendCapRoute = userRoute('patch', '/billing/spend-cap', {
  summary: 'Set or remove the monthly spend limit',
  description:
    'When the limit is reached, tunnels are closed and new tunnels are rejected until the limit is raised or the month ends (UTC).',
  request: { body: jsonBody(spendCap) },
  responses: {
    200: json(spendCap, 'The new spend limit.'),
    400: refused('Not a whole number of cents or null, or the plan is not pay-as-you-go.', 'BILLING_CAP_NOT_PAYG', {
      plan: 'free',
    }),
  },
});

/** Route registered only for the API documentation. The handler must verify the signature over the raw bytes before the body is parsed. */
const webhookRoute = createRoute({
  method: 'post',
  path: BILLING_WEBHOOK_PATH,
  tags: ['billing', EXTENSIONS],
  summary: 'Receive events from the payment processor',
  security: [],
  request: {
    headers: z.object({
      'stripe-signature': z.string().meta({
        description: 'The signature over the body.',
        examples: ['t=1893456000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd'],
      }),
    }),
    body: jsonBody(z.object({}).loose().meta({ description: 'An event.' })),
  },
  responses: {
    200: json(receivedEvent, 'The event was processed.'),
    400: refused('The signature is not valid or too old.', 'WEBHOOK_SIGNATURE'),
    413: refused('The body is larger than 1 MiB.', 'API_BODY_TOO_LARGE', { limit: LIMITS.WEBHOOK_BODY_MAX_BYTES }),
    ...atTheProcessor,
  },
});

type BillingRouteDeps = BillingContext & UserRoutes;

const SIGNATURE_HEADER = 'stripe-signature';

export const addBillingRoutes = (app: PlatformApp, deps: BillingRouteDeps): void => {
  app.use('/billing/*', exceptWebhook(deps.requireUser));
  app.openapi(statusRoute, async (context) => context.json(await showStatus(deps, context.get('actor')), 200));
  app.openapi(usageRoute, async (context) => context.json(await showUsage(deps, context.get('actor')), 200));
  app.openapi(invoicesRoute, async (context) => context.json(await listInvoices(deps, context.get('actor')), 200));
  app.openapi(spendCapRoute, async (context) =>
    context.json(await setSpendCap(deps, context.get('actor'), context.req.valid('json')), 200),
  );
  addOrderRoutes(app, deps);
  addWebhookRoute(app, deps);
};

/** Requires a signed-in user, except for the webhook: the payment processor sends a signature instead of a token. */
const exceptWebhook =
  (requireUser: MiddlewareHandler<PlatformEnv>): MiddlewareHandler<PlatformEnv> =>
  (context, next) =>
    context.req.path === BILLING_WEBHOOK_PATH ? next() : requireUser(context, next);

const addOrderRoutes = (app: PlatformApp, deps: BillingRouteDeps): void => {
  app.openapi(subscribeRoute, async (context) => {
    const execute = () => subscribe(deps, context.get('actor'));
    return context.json(await once(deps, context, { operation: 'subscribe', execute }), 200);
  });
  app.openapi(setupIntentRoute, async (context) => {
    const execute = (key: string | null) => createSetupIntent(deps, context.get('actor'), key ?? randomToken());
    return context.json(await once(deps, context, { operation: 'setup-intent', execute }), 200);
  });
  app.openapi(portalRoute, async (context) => {
    const input = context.req.valid('json');
    const execute = () => openPortal(deps, context.get('actor'), input);
    return context.json(await once(deps, context, { operation: 'portal', input, execute }), 200);
  });
};

const addWebhookRoute = (app: PlatformApp, deps: BillingRouteDeps): void => {
  app.openAPIRegistry.registerPath(webhookRoute);
  app.post(BILLING_WEBHOOK_PATH, async (context) => {
    const signature = headerOf(context, SIGNATURE_HEADER);
    if (signature === undefined) throw new Fault('WEBHOOK_SIGNATURE');
    await receiveEvent(deps, { body: new Uint8Array(await context.req.arrayBuffer()), signature });
    return context.json({ received: true }, 200);
  });
};
