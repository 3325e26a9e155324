// Invoices as the payment processor writes them, read with care: what is missing or of another kind is left out, never an error.
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

/** A link of theirs leads to a page, and does nothing else. */
export const webAddress = (value: unknown): string | null => {
  try {
    const url = new URL(textOf(value) ?? '');
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
};
