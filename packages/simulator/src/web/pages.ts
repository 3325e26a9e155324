// Pages of the simulator: an overview, the hosted portal of a customer, and an invoice. Only forms and tables, without external resources.
import { noSuch } from '../api/api-route.ts';
import { findCustomer } from '../api/customers.ts';
import { findInvoice } from '../api/invoices.ts';
import { reportedBytes } from '../api/meters.ts';
import { nextMonthStart, periodOf } from '../api/subscriptions.ts';
import type { Invoice, PortalSession, Subscription } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { button, code, day, dollars, escaped, makePage, minute, section, table, tag } from './html.ts';

const DAY_SECS = 24 * 60 * 60;
const MODES = { normal: 'in order', late: '3 s late', twice: 'twice', shuffle: 'in any order' } as const;

const TEST_MODE = '<p class="soft">Test mode: no card is real, and nobody is charged.</p>';

export const overviewPage = (sandbox: Sandbox): string =>
  makePage(
    'Payments (test mode)',
    [
      TEST_MODE,
      section('Cards to confirm', intents(sandbox)),
      section('Customers', customers(sandbox)),
      section('Subscriptions', subscriptionTable(sandbox.store.all('subscriptions'), '/', emailOf(sandbox))),
      section('Invoices', invoiceTable(sandbox.store.all('invoices'), '/', emailOf(sandbox))),
      section('Clock', clock(sandbox)),
      section('Webhooks', webhooks(sandbox)),
    ].join('\n'),
  );

const emailOf =
  ({ store }: Sandbox) =>
  (id: string): string =>
    store.get('customers', id)?.email ?? id;

const intents = (sandbox: Sandbox): string =>
  table(
    ['Setup intent', 'Customer', 'Last try', 'Confirm with'],
    sandbox.store
      .all('setup_intents')
      .filter(({ status }) => status !== 'succeeded')
      .reverse()
      .map(({ id, customer, last_setup_error }) => {
        const action = `/_sim/setup_intents/${id}/confirm`;
        return [
          code(id),
          escaped(emailOf(sandbox)(customer)),
          last_setup_error === null ? '' : tag('declined'),
          button('Test card', action, '/', { card: 'good' }) +
            button('Card that declines now', action, '/', { card: 'declined' }) +
            button('Card that declines later', action, '/', { card: 'fails_later' }),
        ];
      }),
    'No pending cards. POST /billing/setup-intent of the platform makes one.',
  );

const customers = (sandbox: Sandbox): string =>
  table(
    ['Customer', 'Address', 'Cards', 'Bytes reported'],
    sandbox.store.all('customers').map((each) => {
      const isDefault = (id: string): boolean => id === each.invoice_settings.default_payment_method;
      const cards = sandbox.store
        .all('payment_methods')
        .filter(({ customer }) => customer === each.id)
        .map(({ id, card }) => `•••• ${escaped(card.last4)}${isDefault(id) ? ` ${tag('default')}` : ''}`);
      return [
        code(each.id),
        escaped(each.email),
        cards.join('<br>'),
        reportedBytes(sandbox, each.id).toLocaleString('en-US'),
      ];
    }),
    'No customers yet',
  );

const clock = (sandbox: Sandbox): string => {
  const now = sandbox.now();
  const ahead = Math.floor(sandbox.aheadMs / 1000);
  const move = (label: string, secs: number): string =>
    button(label, '/_sim/clock', '/', { advance_secs: String(secs) });
  return [
    `<p>${minute(now)} ${ahead === 0 ? '' : tag('ahead of the machine')}</p>`,
    '<p class="soft">It moves invoices and subscriptions alone. Usage and the month of the dashboard follow the real date.</p>',
    move('A day on', DAY_SECS),
    move('A week on', 7 * DAY_SECS),
    // Moves the simulated time one second into the next month, so that the billing period has ended.
    move('To the end of the month', nextMonthStart(now) - now + 1),
  ].join('\n');
};

const webhooks = (sandbox: Sandbox): string => {
  const present = sandbox.store.settings.webhook_mode;
  const waiting = sandbox.store.count('events');
  return [
    `<p>They come ${tag(MODES[present])}; ${waiting} ${waiting === 1 ? 'waits' : 'wait'}.</p>`,
    ...Object.entries(MODES)
      .filter(([mode]) => mode !== present)
      .map(([mode, label]) => button(`Send them ${label}`, '/_sim/webhooks', '/', { mode })),
  ].join('\n');
};

// Hosted portal of a customer: cards, subscription, invoices, and a link back. A session opened for a card shows only cards and returns
// automatically.

const sessionOf = (sandbox: Sandbox, sessionId: string): PortalSession => {
  const session = sandbox.store.get('portal_sessions', sessionId);
  if (session === undefined) throw noSuch('portal session', sessionId);
  return session;
};

/** Returns the URL to which the portal page sends the customer after a card was added. */
export const portalReturn = (sandbox: Sandbox, sessionId: string): string => {
  const { after_card, return_url } = sessionOf(sandbox, sessionId);
  return after_card ?? return_url;
};

export const portalPage = (sandbox: Sandbox, sessionId: string): string => {
  const session = sessionOf(sandbox, sessionId);
  const customer = findCustomer(sandbox, session.customer);
  const here = `/portal/${session.id}`;
  const isForCard = session.after_card != null;
  const own = <T extends { readonly customer: string }>(rows: readonly T[]): T[] =>
    rows.filter((row) => row.customer === customer.id);
  const { default_payment_method } = customer.invoice_settings;
  const cards = own(sandbox.store.all('payment_methods')).map(({ id, card }) => [
    `${escaped(card.brand)} •••• ${escaped(card.last4)}`,
    `${card.exp_month}/${card.exp_year}`,
    id === default_payment_method ? tag('default') : '',
  ]);
  const add = (label: string, card: string): string =>
    button(label, `/_sim/customers/${customer.id}/cards`, isForCard ? `${here}/return` : here, { card });
  const cardSection = section(
    'Cards',
    [
      table(['Card', 'Until', ''], cards, 'No card on file'),
      add('Add test card', 'good'),
      add('Add card that declines', 'fails_later'),
    ].join('\n'),
  );
  const rest = [
    section('Subscription', subscriptionTable(own(sandbox.store.all('subscriptions')), here)),
    section('Invoices', invoiceTable(own(sandbox.store.all('invoices')), here)),
  ];
  return makePage(
    isForCard ? 'Add a payment method (test mode)' : 'Billing portal (test mode)',
    [
      TEST_MODE,
      `<p>${escaped(customer.email)}</p>`,
      `<p><a href="${escaped(session.return_url)}" rel="noreferrer">Back</a></p>`,
      cardSection,
      ...(isForCard ? [] : rest),
    ].join('\n'),
  );
};

/** Renders an invoice as a page to read and print. */
export const invoicePage = (sandbox: Sandbox, id: string): string => {
  const invoice = findInvoice(sandbox, id);
  const { period_start, period_end, status_transitions, lines, total } = invoice;
  const billed = status_transitions.finalized_at ?? invoice.created;
  const rows = lines.data.map(({ description, period, amount }) => [
    escaped(description),
    `${day(period.start)} to ${day(period.end)}`,
    dollars(amount),
  ]);
  return makePage(
    `Invoice ${invoice.number ?? invoice.id}`,
    [
      TEST_MODE,
      `<p>${escaped(invoice.customer_email ?? invoice.customer)}</p>`,
      `<p>${day(billed)}, for ${day(period_start)} to ${day(period_end)} (UTC) ${tag(invoice.status)}</p>`,
      section(
        'Lines',
        table(['Description', 'Period', 'Amount'], [...rows, ['<b>Total</b>', '', `<b>${dollars(total)}</b>`]], ''),
      ),
    ].join('\n'),
  );
};

// Rows shared by overview and portal: subscriptions and invoices with their actions.

const INVOICES_SHOWN = 100;

/** Returns the customer's label, for pages with many customers. */
type OwnerOf = (customerId: string) => string;

const owned = (id: string, customer: string, ownerOf: OwnerOf | undefined): string =>
  `${code(id)}${ownerOf === undefined ? '' : `<br><span class="soft">${escaped(ownerOf(customer))}</span>`}`;

const subscriptionTable = (all: readonly Subscription[], back: string, ownerOf?: OwnerOf): string =>
  table(
    ['Subscription', 'Status', 'Period', ''],
    all.map((each) => {
      const { start, end } = periodOf(each);
      const ends = each.cancel_at_period_end && each.status !== 'canceled';
      return [
        owned(each.id, each.customer, ownerOf),
        `${tag(each.status)}${ends ? ' ends with the period' : ''}`,
        `${day(start)} to ${day(end)}`,
        each.status === 'canceled' ? '' : endButton(each, back),
      ];
    }),
    'No subscription',
  );

const endButton = (subscription: Subscription, back: string): string =>
  subscription.cancel_at_period_end
    ? button('Keep subscription', `/_sim/subscriptions/${subscription.id}/keep`, back)
    : button('Cancel at period end', `/_sim/subscriptions/${subscription.id}/cancel`, back);

const invoiceTable = (all: readonly Invoice[], back: string, ownerOf?: OwnerOf): string =>
  table(
    ['Invoice', 'Period', 'Total', 'Status', 'Lines', ''],
    [...all]
      .reverse()
      .slice(0, INVOICES_SHOWN)
      .map((each) => [
        `<a href="/invoice/${escaped(each.id)}">${owned(each.number ?? each.id, each.customer, ownerOf)}</a>`,
        `${day(each.period_start)} to ${day(each.period_end)}`,
        dollars(each.total),
        tag(each.status),
        each.lines.data.map(({ description, amount }) => `${escaped(description)}: ${dollars(amount)}`).join('<br>'),
        each.status === 'open' ? button('Try to pay', `/_sim/invoices/${each.id}/pay`, back) : '',
      ]),
    'No invoices yet. The first one comes when a month ends.',
  );
