// Rows that the overview and the portal share: subscriptions and invoices with what can be done to them.
import { escaped } from '../../../http/document/html.ts';
import { periodOf } from '../resources/subscriptions.ts';
import type { SimInvoice, SimSubscription } from '../sim-objects.ts';
import { button, code, day, dollars, table, tag } from './page.ts';

const INVOICES_SHOWN = 100;

export const subscriptionTable = (subscriptions: readonly SimSubscription[], back: string): string =>
  table(
    ['Subscription', 'Status', 'Period', ''],
    subscriptions.map((each) => {
      const { start, end } = periodOf(each);
      const ends = each.cancel_at_period_end && each.status !== 'canceled';
      return [
        code(each.id),
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

export const invoiceTable = (invoices: readonly SimInvoice[], back: string): string =>
  table(
    ['Invoice', 'Period', 'Total', 'Status', 'Lines', ''],
    [...invoices]
      .reverse()
      .slice(0, INVOICES_SHOWN)
      .map((each) => [
        code(each.number ?? each.id),
        `${day(each.period_start)} to ${day(each.period_end)}`,
        dollars(each.total),
        tag(each.status),
        each.lines.data.map(({ description, amount }) => `${escaped(description)}: ${dollars(amount)}`).join('<br>'),
        each.status === 'open' ? button('Try to pay', `/_sim/invoices/${each.id}/pay`, back) : '',
      ]),
    'There is no invoice yet. One is made when a month ends.',
  );
