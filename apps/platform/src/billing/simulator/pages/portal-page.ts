// The hosted portal of one customer: cards, the subscription, invoices, and the way back to where they came from.
import { escaped } from '../../../http/document/html.ts';
import { noSuch } from '../sim-error.ts';
import type { SimWorld } from '../sim-world.ts';
import { button, makePage, section, table, tag } from './page.ts';
import { invoiceTable, subscriptionTable } from './rows.ts';

export const portalPage = (world: SimWorld, sessionId: string): string => {
  const session = world.state.get('portal_sessions', sessionId);
  const customer = world.state.get('customers', session?.customer ?? '');
  if (session === undefined || customer === undefined) throw noSuch('portal session', sessionId);
  const back = `/portal/${session.id}`;
  const own = <T extends { readonly customer: string }>(rows: readonly T[]): T[] =>
    rows.filter((row) => row.customer === customer.id);
  const { default_payment_method } = customer.invoice_settings;
  const cards = own(world.state.all('payment_methods')).map(({ id, card }) => [
    `${escaped(card.brand)} •••• ${escaped(card.last4)}`,
    `${card.exp_month}/${card.exp_year}`,
    id === default_payment_method ? tag('default') : '',
  ]);
  const add = `/_sim/customers/${customer.id}/cards`;
  return makePage(
    'Billing portal (simulated)',
    [
      `<p>${escaped(customer.email)}</p>`,
      `<p><a href="${escaped(session.return_url)}" rel="noreferrer">Back</a></p>`,
      section(
        'Cards',
        [
          table(['Card', 'Until', ''], cards, 'There is no card on file.'),
          button('Add a good card', add, back, { card: 'good' }),
          button('Add one that fails later', add, back, { card: 'fails_later' }),
        ].join('\n'),
      ),
      section('Subscription', subscriptionTable(own(world.state.all('subscriptions')), back)),
      section('Invoices', invoiceTable(own(world.state.all('invoices')), back)),
    ].join('\n'),
  );
};
