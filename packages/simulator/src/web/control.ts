// Control calls for people and tests: confirm with a card, move the clock, set the webhook mode, cancel or keep a subscription, retry an
// invoice. As JSON, or as a form of the simulator's pages.
import * as z from 'zod';
import { ApiError, badRequest } from '../api/api-route.ts';
import { type BillingCycle, payInvoice } from '../api/billing-cycle.ts';
import { attachCard, confirmSetupIntent, findCustomer } from '../api/customers.ts';
import { reportedBytes } from '../api/meters.ts';
import { setToEnd } from '../api/subscriptions.ts';
import type { Sandbox } from '../state/sandbox.ts';

const LONGEST_SECS = 800 * 24 * 60 * 60;

const cards = z.enum(['good', 'declined', 'fails_later']);

export interface ControlDeps {
  readonly sandbox: Sandbox;
  readonly billingCycle: BillingCycle;
}

type Control = (deps: ControlDeps, body: unknown, id: string) => object | Promise<object>;

/** Handler of a control call that runs in a transaction, saved before the response. */
const step =
  <S extends z.ZodType>(schema: S, work: (sandbox: Sandbox, params: z.output<S>, id: string) => object): Control =>
  ({ sandbox }, body, id) => {
    const params = checked(schema, body);
    return sandbox.store.transact(() => work(sandbox, params, id));
  };

const checked = <S extends z.ZodType>(schema: S, body: unknown): z.output<S> => {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const name = issue?.path.join('.') ?? '';
  throw badRequest(`${name === '' ? 'The body' : name}: ${issue?.message ?? 'it cannot be read'}`, { param: name });
};

const confirm: Control = ({ sandbox }, body, id) => {
  const { card } = checked(z.strictObject({ card: cards.default('good') }), body);
  const { intent, refusal } = sandbox.store.transact(() => confirmSetupIntent(sandbox, id, card));
  if (refusal !== null) throw refusal;
  return intent;
};

const moveClock: Control = async ({ sandbox, billingCycle }, body) => {
  const { advance_secs } = checked(z.strictObject({ advance_secs: secondsOfForm }), body);
  await billingCycle.advance(advance_secs);
  return clockOf(sandbox);
};
const rule = `must be a whole number of seconds from 0 to ${LONGEST_SECS}`;
const seconds = z.int({ error: rule }).min(0, { error: rule }).max(LONGEST_SECS, { error: rule });
/** Schema of a number of seconds, which also accepts strings, as in a form. */
const secondsOfForm = z.preprocess(
  (given) => (typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : given),
  seconds,
);

const clockOf = (sandbox: Sandbox): object => ({
  now: new Date(sandbox.now() * 1000).toISOString(),
  ahead_secs: Math.floor(sandbox.aheadMs / 1000),
});

const none = z.strictObject({});

const CONTROLS: readonly (readonly [method: string, path: RegExp, run: Control])[] = [
  ['GET', /^\/_sim$/, ({ sandbox }) => show(sandbox)],
  ['POST', /^\/_sim\/setup_intents\/([\w-]+)\/confirm$/, confirm],
  ['POST', /^\/_sim\/clock$/, moveClock],
  [
    'POST',
    /^\/_sim\/webhooks$/,
    step(z.strictObject({ mode: z.enum(['normal', 'late', 'twice', 'shuffle']) }), ({ store }, { mode }) => {
      store.put('settings', { ...store.settings, webhook_mode: mode });
      return { mode };
    }),
  ],
  [
    'POST',
    /^\/_sim\/subscriptions\/([\w-]+)\/cancel$/,
    step(none, (sandbox, _body, id) => setToEnd(sandbox, id, true)),
  ],
  ['POST', /^\/_sim\/subscriptions\/([\w-]+)\/keep$/, step(none, (sandbox, _body, id) => setToEnd(sandbox, id, false))],
  ['POST', /^\/_sim\/invoices\/([\w-]+)\/pay$/, step(none, (sandbox, _body, id) => payInvoice(sandbox, id))],
  [
    'POST',
    /^\/_sim\/customers\/([\w-]+)\/cards$/,
    step(z.strictObject({ card: cards.exclude(['declined']).default('good') }), (sandbox, { card }, id) => {
      const customer = findCustomer(sandbox, id, 'id');
      const method = attachCard(sandbox, id, card);
      const changed = { ...customer, invoice_settings: { default_payment_method: method.id } };
      sandbox.emit('customer.updated', sandbox.store.put('customers', changed), {
        invoice_settings: customer.invoice_settings,
      });
      return method;
    }),
  ],
];

const show = (sandbox: Sandbox): object => ({
  ...clockOf(sandbox),
  webhooks: { mode: sandbox.store.settings.webhook_mode, waiting: sandbox.store.count('events') },
  customers: sandbox.store.all('customers').map(({ id, email }) => ({ id, email, bytes: reportedBytes(sandbox, id) })),
});

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
  throw new ApiError(404, {
    type: 'invalid_request_error',
    message: `The simulator has no control call ${method} ${path}.`,
  });
};
