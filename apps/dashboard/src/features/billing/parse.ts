// Reads what comes from outside: invoices and cards as the payment processor writes them, and money as people type it.
import { webAddress } from '../../shared/page-url.ts';
import type { Tone } from '../../ui/badge.tsx';

export interface Invoice {
  readonly key: string;
  readonly number: string;
  /** ms since the epoch; null: not told. */
  readonly at: number | null;
  readonly amount: string | null;
  readonly status: { readonly text: string; readonly tone: Tone };
  /** A page or a document at the processor. */
  readonly url: string | null;
}

type Raw = Readonly<Record<string, unknown>>;

/** With care: what is missing or of another kind is left out, never an error. */
export const readInvoice = (raw: Raw, index: number): Invoice => {
  const id = textOf(raw['id']);
  return {
    key: id ?? `invoice-${index}`,
    number: textOf(raw['number']) ?? id ?? 'No number yet',
    at: secondsOf(readPart(raw['status_transitions'])['finalized_at']) ?? secondsOf(raw['created']),
    amount: amountOf(raw['total'] ?? raw['amount_due'], raw['currency']),
    status: statusOf(textOf(raw['status'])),
    url: webAddress(raw['hosted_invoice_url']) ?? webAddress(raw['invoice_pdf']),
  };
};

const STATUSES: Readonly<Record<string, Invoice['status']>> = {
  draft: { text: 'Draft', tone: 'neutral' },
  open: { text: 'Open', tone: 'warn' },
  paid: { text: 'Paid', tone: 'good' },
  void: { text: 'Void', tone: 'neutral' },
  uncollectible: { text: 'Not paid', tone: 'bad' },
};

const statusOf = (status: string | null): Invoice['status'] =>
  STATUSES[status ?? ''] ?? { text: status ?? 'Unknown', tone: 'neutral' };

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

const readPart = (value: unknown): Raw => (typeof value === 'object' && value !== null ? (value as Raw) : {});

const secondsOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value * 1000 : null;

/** Amounts are in the smallest unit of their currency. */
const amountOf = (value: unknown, currency: unknown): string | null => {
  if (typeof value !== 'number' || !Number.isFinite(value)) return null;
  try {
    const format = new Intl.NumberFormat('en-US', { style: 'currency', currency: textOf(currency) ?? 'usd' });
    return format.format(value / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
  } catch {
    // No currency that anyone knows.
    return `${value} ${String(currency)}`;
  }
};

const BRANDS: Readonly<Record<string, string>> = {
  amex: 'American Express',
  diners: 'Diners Club',
  jcb: 'JCB',
  unionpay: 'UnionPay',
};

/** As people know their card; brands are written as the processor does, in lower case. */
export const cardText = ({ brand, last4 }: { readonly brand: string; readonly last4: string }): string =>
  `${BRANDS[brand] ?? brand.charAt(0).toUpperCase() + brand.slice(1)} •••• ${last4}`;

type Dollars = { readonly cents: number } | { readonly problem: string };

const FORM = /^\$?\s*(\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d*))?$/;

/** The most that is kept exactly. */
const MAX_CENTS = Number.MAX_SAFE_INTEGER;

/** Dollars in, whole cents out. */
export const parseDollars = (text: string): Dollars => {
  const typed = text.trim();
  if (typed === '') return { problem: 'Enter an amount in dollars, for example 20 or 7.50.' };
  if (/^-|^\$\s*-/.test(typed)) return { problem: 'Enter zero or more.' };
  const [matched, whole = '', fraction = ''] = FORM.exec(typed) ?? [];
  if (matched === undefined || (whole === '' && fraction === '')) {
    return { problem: 'Enter an amount in dollars, for example 20 or 7.50.' };
  }
  if (fraction.length > 2) return { problem: 'Use at most two digits after the decimal point.' };
  const cents = Number(whole.replaceAll(',', '')) * 100 + Number(fraction.padEnd(2, '0'));
  return cents <= MAX_CENTS ? { cents } : { problem: 'The amount is too large.' };
};

/** For the field that it is typed in: 2000 is "20.00". */
export const dollarsText = (cents: number): string => (cents / 100).toFixed(2);
