// Customers: create, find by address, change, payment methods, and sessions of the hosted portal.
import { randomId, randomToken } from '@tunnel/runtime';
import * as z from 'zod';
import type { CardKind, Customer, PaymentMethod, PortalSession, SetupIntent } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import {
  type ApiError,
  badRequest,
  cardDeclined,
  flag,
  listPage,
  metadata,
  none,
  noSuch,
  paging,
  type Route,
  route,
  text,
} from './api-route.ts';

export const findCustomer = (sandbox: Sandbox, id: string, param = 'customer'): Customer => {
  const customer = sandbox.store.get('customers', id);
  if (customer === undefined) throw noSuch('customer', id, param);
  return customer;
};

/** The only test clock, shared by all customers. It follows the machine's clock and can be moved ahead. */
const CLOCK_ID = 'clock_simulated';

export const clockRoutes: readonly Route[] = [
  route('GET', '/v1/test_helpers/test_clocks/{id}', none, (sandbox, _params, id) => {
    if (id !== CLOCK_ID) throw noSuch('test clock', id, 'id');
    const frozen_time = sandbox.now();
    return { id, object: 'test_helpers.test_clock', livemode: false, name: null, status: 'ready', frozen_time };
  }),
];

const newCustomer = z.strictObject({ email: text(512), name: text(256).optional(), metadata: metadata() });

const createCustomer = (sandbox: Sandbox, params: z.output<typeof newCustomer>): Customer => {
  const customer = sandbox.store.put('customers', {
    id: randomId('cus'),
    object: 'customer',
    livemode: false,
    created: sandbox.now(),
    email: params.email,
    name: params.name ?? null,
    metadata: params.metadata,
    invoice_settings: { default_payment_method: null },
    test_clock: CLOCK_ID,
  });
  sandbox.emit('customer.created', customer);
  return customer;
};

const customerChange = z.strictObject({
  email: text(512).optional(),
  name: text(256).optional(),
  invoice_settings: z.strictObject({ default_payment_method: text() }).optional(),
});

const updateCustomer = (sandbox: Sandbox, params: z.output<typeof customerChange>, id: string): Customer => {
  const before = findCustomer(sandbox, id, 'id');
  if (params.invoice_settings !== undefined) {
    checkOwnMethod(sandbox, id, params.invoice_settings.default_payment_method);
  }
  const after = sandbox.store.put('customers', {
    ...before,
    email: params.email ?? before.email,
    name: params.name ?? before.name,
    invoice_settings: params.invoice_settings ?? before.invoice_settings,
  });
  const previous = { email: before.email, name: before.name, invoice_settings: before.invoice_settings };
  sandbox.emit('customer.updated', after, previous);
  return after;
};

const checkOwnMethod = (sandbox: Sandbox, customerId: string, methodId: string): void => {
  const param = 'invoice_settings[default_payment_method]';
  const method = sandbox.store.get('payment_methods', methodId);
  if (method === undefined) throw noSuch('PaymentMethod', methodId, param);
  if (method.customer === customerId) return;
  throw badRequest('The customer does not have a payment method with this ID.', { code: 'resource_missing', param });
};

const customerList = z.strictObject({ ...paging, email: text(512).optional() });

export const customerRoutes: readonly Route[] = [
  route('POST', '/v1/customers', newCustomer, createCustomer),
  route('GET', '/v1/customers', customerList, ({ store }, { email, ...page }) =>
    listPage(
      '/v1/customers',
      store.all('customers').filter((customer) => email === undefined || customer.email === email),
      page,
    ),
  ),
  route('GET', '/v1/customers/{id}', none, (sandbox, _params, id) => findCustomer(sandbox, id, 'id')),
  route('POST', '/v1/customers/{id}', customerChange, updateCustomer),
  route('GET', '/v1/customers/{id}/payment_methods', z.strictObject(paging), (sandbox, page, id) => {
    findCustomer(sandbox, id);
    const own = sandbox.store.all('payment_methods').filter(({ customer }) => customer === id);
    return listPage(`/v1/customers/${id}/payment_methods`, own, page);
  }),
];

// Simulated cards of customers. The metadata determines how a card behaves.

/** Last digits of the payment processor's test cards. */
const LAST_FOUR: Readonly<Record<CardKind, string>> = { good: '4242', declined: '0002', fails_later: '0341' };
const YEARS_VALID = 4;

export const attachCard = (sandbox: Sandbox, customer: string, kind: Exclude<CardKind, 'declined'>): PaymentMethod => {
  const method = sandbox.store.put('payment_methods', {
    id: randomId('pm'),
    object: 'payment_method',
    livemode: false,
    created: sandbox.now(),
    type: 'card',
    customer,
    card: {
      brand: 'visa',
      last4: LAST_FOUR[kind],
      exp_month: 12,
      exp_year: new Date(sandbox.now() * 1000).getUTCFullYear() + YEARS_VALID,
    },
    metadata: { simulated: kind },
  });
  sandbox.emit('payment_method.attached', method);
  return method;
};

// Setup intents, which put a card on file. Confirmed by a control call instead of a browser.

const newSetupIntent = z.strictObject({
  customer: text(),
  usage: z.enum(['off_session', 'on_session']),
  automatic_payment_methods: z
    .strictObject({ enabled: flag(), allow_redirects: z.enum(['always', 'never']).optional() })
    .optional(),
});

const createSetupIntent = (sandbox: Sandbox, { customer, usage }: z.output<typeof newSetupIntent>): SetupIntent => {
  findCustomer(sandbox, customer);
  const id = randomId('seti');
  return sandbox.store.put('setup_intents', {
    id,
    object: 'setup_intent',
    livemode: false,
    created: sandbox.now(),
    client_secret: `${id}_secret_${randomToken(18).replaceAll(/[-_]/g, 'x')}`,
    customer,
    status: 'requires_payment_method',
    usage,
    payment_method: null,
    last_setup_error: null,
  });
};

export const setupIntentRoutes: readonly Route[] = [
  route('POST', '/v1/setup_intents', newSetupIntent, createSetupIntent),
  route('GET', '/v1/setup_intents/{id}', none, (sandbox, _params, id) => setupIntentOf(sandbox, id)),
];

/** Finds a setup intent by id or by its complete client secret. */
const setupIntentOf = (sandbox: Sandbox, reference: string): SetupIntent => {
  const [id = ''] = reference.split('_secret_');
  const intent = sandbox.store.get('setup_intents', id);
  if (intent === undefined || (reference !== id && reference !== intent.client_secret)) {
    throw noSuch('setupintent', id, 'intent');
  }
  return intent;
};

interface Confirmed {
  readonly intent: SetupIntent;
  /** Error if the card was declined. Then the intent waits for another card. */
  readonly refusal: ApiError | null;
}

/** Returns a refusal instead of throwing it, so that the attempt is saved. */
export const confirmSetupIntent = (sandbox: Sandbox, reference: string, card: CardKind): Confirmed => {
  const intent = setupIntentOf(sandbox, reference);
  if (intent.status === 'succeeded') {
    throw badRequest('You cannot confirm this SetupIntent because it has already succeeded.', {
      code: 'setup_intent_unexpected_state',
    });
  }
  if (card === 'declined') {
    const refusal = cardDeclined();
    const failed = sandbox.store.put('setup_intents', { ...intent, last_setup_error: refusal.body });
    sandbox.emit('setup_intent.setup_failed', failed);
    return { intent: failed, refusal };
  }
  const method = attachCard(sandbox, intent.customer, card);
  const done = sandbox.store.put('setup_intents', {
    ...intent,
    status: 'succeeded',
    payment_method: method.id,
    last_setup_error: null,
  });
  sandbox.emit('setup_intent.succeeded', done);
  return { intent: done, refusal: null };
};

// Sessions of the hosted portal: a page of the simulator for a customer.

const newPortalSession = z.strictObject({
  customer: text(),
  return_url: text(),
  /** Present if the portal page only asks for a card. */
  flow_data: z
    .strictObject({
      type: z.literal('payment_method_update'),
      after_completion: z.strictObject({
        type: z.literal('redirect'),
        redirect: z.strictObject({ return_url: text() }),
      }),
    })
    .optional(),
});

const checkAddress = (address: string, param: string): void => {
  if (/^https?:\/\//i.test(address) && URL.canParse(address)) return;
  throw badRequest('Not a valid URL', { code: 'url_invalid', param });
};

/** Routes of the customer portal. `baseUrl` is a function, because the address may change after a restart. */
export const portalRoutes = (baseUrl: () => string): readonly Route[] => [
  route('POST', '/v1/billing_portal/sessions', newPortalSession, (sandbox: Sandbox, given): PortalSession => {
    const { flow_data, ...params } = given;
    const after_card = flow_data?.after_completion.redirect.return_url ?? null;
    findCustomer(sandbox, params.customer);
    checkAddress(params.return_url, 'return_url');
    if (after_card !== null) checkAddress(after_card, 'flow_data[after_completion][redirect][return_url]');
    const id = randomId('bps');
    return sandbox.store.put('portal_sessions', {
      id,
      object: 'billing_portal.session',
      livemode: false,
      created: sandbox.now(),
      ...params,
      after_card,
      url: `${baseUrl()}/portal/${id}`,
    });
  }),
];
