// What a person or a test does to the stand-in: confirm with a card, move the clock, choose how webhooks come, end or keep a
// subscription, have an invoice tried again. As JSON, or as a form of its own pages.
import * as z from 'zod';
import { payInvoice } from './payments.ts';
import type { PeriodEnds } from './period-ends.ts';
import { customerOf } from './resources/customers.ts';
import { attachCard } from './resources/payment-methods.ts';
import { confirmSetupIntent } from './resources/setup-intents.ts';
import { setToEnd } from './resources/subscriptions.ts';
import { badRequest, SimError } from './sim-error.ts';
import type { SimWorld } from './sim-world.ts';

const LONGEST_SECS = 800 * 24 * 60 * 60;

const cards = z.enum(['good', 'declined', 'fails_later']);

export interface ControlDeps {
  readonly world: SimWorld;
  readonly periodEnds: PeriodEnds;
}

type Control = (deps: ControlDeps, body: unknown, id: string) => object | Promise<object>;

/** All in one step, kept before it is answered. */
const step =
  <S extends z.ZodType>(schema: S, work: (world: SimWorld, params: z.output<S>, id: string) => object): Control =>
  ({ world }, body, id) => {
    const params = checked(schema, body);
    return world.state.transact(() => work(world, params, id));
  };

const checked = <S extends z.ZodType>(schema: S, body: unknown): z.output<S> => {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const name = issue?.path.join('.') ?? '';
  throw badRequest(`${name === '' ? 'The body' : name}: ${issue?.message ?? 'it cannot be read'}`, { param: name });
};

const confirm: Control = ({ world }, body, id) => {
  const { card } = checked(z.strictObject({ card: cards.default('good') }), body);
  const { intent, refusal } = world.state.transact(() => confirmSetupIntent(world, id, card));
  if (refusal !== null) throw refusal;
  return intent;
};

const moveClock: Control = async ({ world, periodEnds }, body) => {
  const { advance_secs } = checked(z.strictObject({ advance_secs: secondsOfForm }), body);
  await periodEnds.advance(advance_secs);
  return clockOf(world);
};
const rule = `must be a whole number of seconds from 0 to ${LONGEST_SECS}`;
const seconds = z.int({ error: rule }).min(0, { error: rule }).max(LONGEST_SECS, { error: rule });
/** A form has text alone. */
const secondsOfForm = z.preprocess(
  (given) => (typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : given),
  seconds,
);

const clockOf = (world: SimWorld): object => ({
  now: new Date(world.now() * 1000).toISOString(),
  ahead_secs: Math.floor(world.aheadMs / 1000),
});

const none = z.strictObject({});

const CONTROLS: readonly (readonly [method: string, path: RegExp, run: Control])[] = [
  ['GET', /^\/_sim$/, ({ world }) => show(world)],
  ['POST', /^\/_sim\/setup_intents\/([\w-]+)\/confirm$/, confirm],
  ['POST', /^\/_sim\/clock$/, moveClock],
  [
    'POST',
    /^\/_sim\/webhooks$/,
    step(z.strictObject({ mode: z.enum(['normal', 'late', 'twice', 'shuffle']) }), ({ state }, { mode }) => {
      state.put('settings', { ...state.settings, webhook_mode: mode });
      return { mode };
    }),
  ],
  ['POST', /^\/_sim\/subscriptions\/([\w-]+)\/cancel$/, step(none, (world, _body, id) => setToEnd(world, id, true))],
  ['POST', /^\/_sim\/subscriptions\/([\w-]+)\/keep$/, step(none, (world, _body, id) => setToEnd(world, id, false))],
  ['POST', /^\/_sim\/invoices\/([\w-]+)\/pay$/, step(none, (world, _body, id) => payInvoice(world, id))],
  [
    'POST',
    /^\/_sim\/customers\/([\w-]+)\/cards$/,
    step(z.strictObject({ card: cards.exclude(['declined']).default('good') }), (world, { card }, id) => {
      const customer = customerOf(world, id, 'id');
      const method = attachCard(world, id, card);
      const changed = { ...customer, invoice_settings: { default_payment_method: method.id } };
      world.emit('customer.updated', world.state.put('customers', changed), {
        invoice_settings: customer.invoice_settings,
      });
      return method;
    }),
  ],
];

const show = (world: SimWorld): object => ({
  ...clockOf(world),
  webhooks: { mode: world.state.settings.webhook_mode, waiting: world.state.count('events') },
  customers: world.state.all('customers').map(({ id, email }) => ({ id, email, bytes: bytesOf(world, id) })),
});

export const bytesOf = ({ state }: SimWorld, customerId: string): number =>
  state
    .all('meter_events')
    .filter(({ customer }) => customer === customerId)
    .reduce((sum, { value }) => sum + value, 0);

export const answerControl = async (
  deps: ControlDeps,
  method: string,
  path: string,
  body: unknown,
): Promise<object> => {
  for (const [ownMethod, pattern, run] of CONTROLS) {
    const [whole, id = ''] = pattern.exec(path) ?? [];
    if (whole !== undefined && ownMethod === method) return run(deps, body, id);
  }
  throw new SimError(404, {
    type: 'invalid_request_error',
    message: `The simulator has no control call ${method} ${path}.`,
  });
};
