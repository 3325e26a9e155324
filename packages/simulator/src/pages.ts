// The stand-in's pages: an overview of everything, and the hosted portal of one customer. Forms and tables, nothing from elsewhere, and
// a policy that lets nothing else in.
import { createHash } from 'node:crypto';
import { noSuch } from './api-route.ts';
import { reportedBytes } from './meters.ts';
import type { Invoice, Subscription } from './model.ts';
import type { Sandbox } from './sandbox.ts';
import { nextMonthStart, periodOf } from './subscriptions.ts';

const DAY_SECS = 24 * 60 * 60;
const MODES = { normal: 'in order', late: '3 s late', twice: 'twice', shuffle: 'in any order' } as const;

export const overviewPage = (sandbox: Sandbox): string =>
  makePage(
    'Payment simulator',
    [
      '<p class="soft">It stands in for the payment processor on this machine. No card and no money is real.</p>',
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
          button('A good card', action, '/', { card: 'good' }) +
            button('One that is declined', action, '/', { card: 'declined' }) +
            button('One that fails later', action, '/', { card: 'fails_later' }),
        ];
      }),
    'None waits. POST /billing/setup-intent of the platform makes one.',
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
    'There is no customer yet.',
  );

const clock = (sandbox: Sandbox): string => {
  const now = sandbox.now();
  const ahead = Math.floor(sandbox.aheadMs / 1000);
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

// The hosted portal of one customer: cards, the subscription, invoices, and the way back to where they came from.

export const portalPage = (sandbox: Sandbox, sessionId: string): string => {
  const session = sandbox.store.get('portal_sessions', sessionId);
  const customer = sandbox.store.get('customers', session?.customer ?? '');
  if (session === undefined || customer === undefined) throw noSuch('portal session', sessionId);
  const back = `/portal/${session.id}`;
  const own = <T extends { readonly customer: string }>(rows: readonly T[]): T[] =>
    rows.filter((row) => row.customer === customer.id);
  const { default_payment_method } = customer.invoice_settings;
  const cards = own(sandbox.store.all('payment_methods')).map(({ id, card }) => [
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
      section('Subscription', subscriptionTable(own(sandbox.store.all('subscriptions')), back)),
      section('Invoices', invoiceTable(own(sandbox.store.all('invoices')), back)),
    ].join('\n'),
  );
};

// Rows that the overview and the portal share: subscriptions and invoices with what can be done to them.

const INVOICES_SHOWN = 100;

/** `ownerOf`: on a page of many customers, whose it is. */
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
    'There is no subscription.',
  );

const endButton = (subscription: Subscription, back: string): string =>
  subscription.cancel_at_period_end
    ? button('Keep it', `/_sim/subscriptions/${subscription.id}/keep`, back)
    : button('Cancel at period end', `/_sim/subscriptions/${subscription.id}/cancel`, back);

const invoiceTable = (all: readonly Invoice[], back: string, ownerOf?: OwnerOf): string =>
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

const STYLE = `:root{color-scheme:light dark;--ground:#f1f5f9;--card:#fff;--ink:#0f172a;--soft:#64748b;--line:#e2e8f0;--act:#1d4ed8}
@media (prefers-color-scheme:dark){:root{--ground:#0f172a;--card:#1e293b;--ink:#e2e8f0;--soft:#94a3b8;--line:#334155;--act:#3b82f6}}
*{box-sizing:border-box}
body{margin:0;padding:2rem 1rem 4rem;background:var(--ground);color:var(--ink);font:.95rem/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto}
h1{margin:0;font-size:1.4rem}
h2{margin:0 0 .75rem;font-size:1rem}
p{margin:.25rem 0}
section{margin:1.25rem 0;padding:1.25rem;border-radius:.6rem;background:var(--card);overflow-x:auto}
.soft{color:var(--soft)}
table{width:100%;border-collapse:collapse}
th,td{padding:.45rem .6rem .45rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;white-space:nowrap}
th{color:var(--soft);font-weight:500}
tr:last-child td{border-bottom:0}
code{font-size:.85em}
form{display:inline-flex;gap:.4rem;margin:0 .4rem .3rem 0}
button,select{padding:.3rem .7rem;border:1px solid var(--line);border-radius:.35rem;background:var(--card);color:inherit;font:inherit}
button{border-color:var(--act);background:var(--act);color:#fff;cursor:pointer}
a{color:var(--act)}
.tag{padding:.1rem .5rem;border-radius:1rem;background:var(--line);font-size:.85em}`;

export const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE, 'utf8').digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `body` is HTML whose texts were escaped. */
export const makePage = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${body}
</main>
</body>
</html>
`;

const section = (heading: string, content: string): string =>
  `<section>\n<h2>${escaped(heading)}</h2>\n${content}\n</section>`;

/** Cells are HTML. */
const table = (heads: readonly string[], rows: readonly (readonly string[])[], ifNone: string): string => {
  if (rows.length === 0) return `<p class="soft">${escaped(ifNone)}</p>`;
  const head = heads.map((text) => `<th>${escaped(text)}</th>`).join('');
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n');
  return `<table>\n<tr>${head}</tr>\n${body}\n</table>`;
};

/** One button that does one thing and comes back to `back`. */
const button = (label: string, action: string, back: string, fields: Readonly<Record<string, string>> = {}): string => {
  const hidden = Object.entries({ ...fields, back }).map(
    ([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`,
  );
  return `<form method="post" action="${escaped(action)}">${hidden.join('')}<button>${escaped(label)}</button></form>`;
};

const tag = (text: string): string => `<span class="tag">${escaped(text)}</span>`;
export const code = (text: string): string => `<code>${escaped(text)}</code>`;
const dollars = (cents: number): string => `$${(cents / 100).toFixed(2)}`;
const day = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10);
const minute = (seconds: number): string =>
  `${new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);
