// Customers: made, found by address, changed, and what they can be charged by.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { listPage } from '../list-page.ts';
import { metadata, none, paging, text } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest, noSuch } from '../sim-error.ts';
import type { SimCustomer } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';

export const customerOf = (world: SimWorld, id: string, param = 'customer'): SimCustomer => {
  const customer = world.state.get('customers', id);
  if (customer === undefined) throw noSuch('customer', id, param);
  return customer;
};

const creating = z.strictObject({ email: text(512), name: text(256).optional(), metadata: metadata() });

const create = (world: SimWorld, params: z.output<typeof creating>): SimCustomer => {
  const customer = world.state.put('customers', {
    id: randomId('cus'),
    object: 'customer',
    livemode: false,
    created: world.now(),
    email: params.email,
    name: params.name ?? null,
    metadata: params.metadata,
    invoice_settings: { default_payment_method: null },
  });
  world.emit('customer.created', customer);
  return customer;
};

const updating = z.strictObject({
  name: text(256).optional(),
  invoice_settings: z.strictObject({ default_payment_method: text() }).optional(),
});

const update = (world: SimWorld, params: z.output<typeof updating>, id: string): SimCustomer => {
  const before = customerOf(world, id, 'id');
  if (params.invoice_settings !== undefined) {
    checkOwnMethod(world, id, params.invoice_settings.default_payment_method);
  }
  const after = world.state.put('customers', {
    ...before,
    name: params.name ?? before.name,
    invoice_settings: params.invoice_settings ?? before.invoice_settings,
  });
  const previous = { name: before.name, invoice_settings: before.invoice_settings };
  world.emit('customer.updated', after, previous);
  return after;
};

const checkOwnMethod = (world: SimWorld, customerId: string, methodId: string): void => {
  const param = 'invoice_settings[default_payment_method]';
  const method = world.state.get('payment_methods', methodId);
  if (method === undefined) throw noSuch('PaymentMethod', methodId, param);
  if (method.customer === customerId) return;
  throw badRequest('The customer does not have a payment method with this ID.', { code: 'resource_missing', param });
};

const listing = z.strictObject({ ...paging, email: text(512).optional() });

export const customerRoutes: readonly Route[] = [
  route('POST', '/v1/customers', creating, create),
  route('GET', '/v1/customers', listing, ({ state }, { email, ...page }) =>
    listPage(
      '/v1/customers',
      state.all('customers').filter((customer) => email === undefined || customer.email === email),
      page,
    ),
  ),
  route('GET', '/v1/customers/{id}', none, (world, _params, id) => customerOf(world, id, 'id')),
  route('POST', '/v1/customers/{id}', updating, update),
  route('GET', '/v1/customers/{id}/payment_methods', z.strictObject(paging), (world, page, id) => {
    customerOf(world, id);
    const own = world.state.all('payment_methods').filter(({ customer }) => customer === id);
    return listPage(`/v1/customers/${id}/payment_methods`, own, page);
  }),
];
