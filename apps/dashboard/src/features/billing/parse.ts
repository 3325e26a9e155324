// Parsers for external data: invoices and cards from the payment processor, and amounts of money typed by users.
import { webAddress } from '../../shared/page-url.ts';
import type { Tone } from '../../ui/badge.tsx';

export interface Invoice {
  readonly key: string;
  readonly number: string;
  /** Date of the invoice in ms since the epoch. Null if unknown. */
  readonly at: number | null;
  readonly amount: string | null;
  readonly status: { readonly text: string; readonly tone: Tone };
  /** URL of the invoice at the payment processor: a web page or a document. Null if unknown. */
  readonly url: string | null;
}

type Raw = Readonly<Record<string, unknown>>;

/** Parses an invoice of the payment processor. Never throws: missing fields and fields of an unexpected type are left out. */
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

/** Formats an amount of money given in the smallest unit of its currency, such as cents. Null if the amount is not a number. */
const amountOf = (value: unknown, currency: unknown): string | null => {
  if (typeof value !== 'number' || !Number.isFinite(value)) return null;
  try {
    const format = new Intl.NumberFormat('en-US', { style: 'currency', currency: textOf(currency) ?? 'usd' });
    return format.format(value / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
  } catch {
    // Intl rejected the currency code, so the number is shown unformatted.
    return `${value} ${String(currency)}`;
  }
};

const BRANDS: Readonly<Record<string, string>> = {
  amex: 'American Express',
  diners: 'Diners Club',
  jcb: 'JCB',
  unionpay: 'UnionPay',
};

/** Returns a card's brand and last digits as users know them. The payment processor writes brands in lower case. */
export const cardText = ({ brand, last4 }: { readonly brand: string; readonly last4: string }): string =>
  `${BRANDS[brand] ?? brand.charAt(0).toUpperCase() + brand.slice(1)} •••• ${last4}`;

type Dollars = { readonly cents: number } | { readonly problem: string };

const FORM = /^\$?\s*(\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d*))?$/;

/** Largest amount in cents that JavaScript numbers represent exactly. */
const MAX_CENTS = Number.MAX_SAFE_INTEGER;

/** Parses a typed amount in dollars. Returns whole cents, or an error message. */
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

/** Formats cents for the input field: 2000 becomes "20.00". */
export const dollarsText = (cents: number): string => (cents / 100).toFixed(2);
