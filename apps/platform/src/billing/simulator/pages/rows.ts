// Rows that the overview and the portal share: subscriptions and invoices with what can be done to them.
import { escaped } from '../../../http/document/html.ts';
import { periodOf } from '../resources/subscriptions.ts';
import type { SimInvoice, SimSubscription } from '../sim-objects.ts';
import { button, code, day, dollars, table, tag } from './page.ts';

const INVOICES_SHOWN = 100;

/** `ownerOf`: on a page of many customers, whose it is. */
type OwnerOf = (customerId: string) => string;

const owned = (id: string, customer: string, ownerOf: OwnerOf | undefined): string =>
  `${code(id)}${ownerOf === undefined ? '' : `<br><span class="soft">${escaped(ownerOf(customer))}</span>`}`;

export const subscriptionTable = (all: readonly SimSubscription[], back: string, ownerOf?: OwnerOf): string =>
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
    'There is no subscription.',
  );

const endButton = (subscription: SimSubscription, back: string): string =>
  subscription.cancel_at_period_end
    ? button('Keep it', `/_sim/subscriptions/${subscription.id}/keep`, back)
    : button('Cancel at period end', `/_sim/subscriptions/${subscription.id}/cancel`, back);

export const invoiceTable = (all: readonly SimInvoice[], back: string, ownerOf?: OwnerOf): string =>
  table(
    ['Invoice', 'Period', 'Total', 'Status', 'Lines', ''],
    [...all]
      .reverse()
      .slice(0, INVOICES_SHOWN)
      .map((each) => [
        owned(each.number ?? each.id, each.customer, ownerOf),
        `${day(each.period_start)} to ${day(each.period_end)}`,
        dollars(each.total),
        tag(each.status),
        each.lines.data.map(({ description, amount }) => `${escaped(description)}: ${dollars(amount)}`).join('<br>'),
        each.status === 'open' ? button('Try to pay', `/_sim/invoices/${each.id}/pay`, back) : '',
      ]),
    'There is no invoice yet. One is made when a month ends.',
  );
