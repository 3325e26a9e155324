// The stand-in at a glance: who its customers are, what waits for a card, its clock, and how webhooks come.
import { escaped } from '../../../http/document/html.ts';
import { bytesOf } from '../control.ts';
import { nextMonthStart } from '../month-end.ts';
import type { SimWorld } from '../sim-world.ts';
import { button, code, makePage, minute, section, table, tag } from './page.ts';
import { invoiceTable, subscriptionTable } from './rows.ts';

const DAY_SECS = 24 * 60 * 60;
const MODES = { normal: 'in order', late: '3 s late', twice: 'twice', shuffle: 'in any order' } as const;

export const overviewPage = (world: SimWorld): string =>
  makePage(
    'Payment simulator',
    [
      '<p class="soft">It stands in for the payment processor on this machine. No card and no money is real.</p>',
      section('Cards to confirm', intents(world)),
      section('Customers', customers(world)),
      section('Subscriptions', subscriptionTable(world.state.all('subscriptions'), '/', ownerOf(world))),
      section('Invoices', invoiceTable(world.state.all('invoices'), '/', ownerOf(world))),
      section('Clock', clock(world)),
      section('Webhooks', webhooks(world)),
    ].join('\n'),
  );

const ownerOf =
  ({ state }: SimWorld) =>
  (id: string): string =>
    state.get('customers', id)?.email ?? id;

const intents = (world: SimWorld): string =>
  table(
    ['Setup intent', 'Customer', 'Last try', 'Confirm with'],
    world.state
      .all('setup_intents')
      .filter(({ status }) => status !== 'succeeded')
      .reverse()
      .map(({ id, customer, last_setup_error }) => {
        const action = `/_sim/setup_intents/${id}/confirm`;
        return [
          code(id),
          escaped(ownerOf(world)(customer)),
          last_setup_error === null ? '' : tag('declined'),
          button('A good card', action, '/', { card: 'good' }) +
            button('One that is declined', action, '/', { card: 'declined' }) +
            button('One that fails later', action, '/', { card: 'fails_later' }),
        ];
      }),
    'None waits. POST /billing/setup-intent of the platform makes one.',
  );

const customers = (world: SimWorld): string =>
  table(
    ['Customer', 'Address', 'Cards', 'Bytes reported'],
    world.state.all('customers').map((each) => {
      const isDefault = (id: string): boolean => id === each.invoice_settings.default_payment_method;
      const cards = world.state
        .all('payment_methods')
        .filter(({ customer }) => customer === each.id)
        .map(({ id, card }) => `•••• ${escaped(card.last4)}${isDefault(id) ? ` ${tag('default')}` : ''}`);
      return [code(each.id), escaped(each.email), cards.join('<br>'), bytesOf(world, each.id).toLocaleString('en-US')];
    }),
    'There is no customer yet.',
  );

const clock = (world: SimWorld): string => {
  const now = world.now();
  const ahead = Math.floor(world.aheadMs / 1000);
  const move = (label: string, secs: number): string =>
    button(label, '/_sim/clock', '/', { advance_secs: String(secs) });
  return [
    `<p>${minute(now)} ${ahead === 0 ? '' : tag('ahead of the machine')}</p>`,
    move('A day on', DAY_SECS),
    move('A week on', 7 * DAY_SECS),
    // A moment into the month, so that its end is over.
    move('To the end of the month', nextMonthStart(now) - now + 1),
  ].join('\n');
};

const webhooks = (world: SimWorld): string => {
  const present = world.state.settings.webhook_mode;
  const waiting = world.state.count('events');
  return [
    `<p>They come ${tag(MODES[present])}; ${waiting} ${waiting === 1 ? 'waits' : 'wait'}.</p>`,
    ...Object.entries(MODES)
      .filter(([mode]) => mode !== present)
      .map(([mode, label]) => button(`Send them ${label}`, '/_sim/webhooks', '/', { mode })),
  ].join('\n');
};
