import { describe, expect, it } from 'vitest';
import { cardText, dollarsText, parseDollars, readInvoice } from './parse.ts';

const PAID = {
  id: 'in_1',
  object: 'invoice',
  number: 'SIM-000001',
  created: 1_900_000_000,
  currency: 'usd',
  total: 1234,
  status: 'paid',
  status_transitions: { finalized_at: 1_900_003_600, paid_at: 1_900_003_700 },
  hosted_invoice_url: 'https://pay.example/i/1',
  invoice_pdf: 'https://pay.example/i/1.pdf',
};

it('an invoice is read with number, date, amount, status and link', () => {
  expect(readInvoice(PAID, 0)).toEqual({
    key: 'in_1',
    number: 'SIM-000001',
    at: 1_900_003_600_000,
    amount: '$12.34',
    status: { text: 'Paid', tone: 'good' },
    url: 'https://pay.example/i/1',
  });
});

it('a draft invoice shows its id in place of a number, and has no link', () => {
  const draft = { ...PAID, number: null, status: 'draft', hosted_invoice_url: null, invoice_pdf: null };
  const { number, status, url } = readInvoice({ ...draft, status_transitions: { finalized_at: null } }, 0);
  expect([number, status.text, url]).toEqual(['in_1', 'Draft', null]);
});

it('an invoice that is not finalized shows the time of creation', () => {
  expect(readInvoice({ ...PAID, status_transitions: null }, 0).at).toBe(1_900_000_000_000);
});

it.each([
  [{ currency: 'jpy', total: 500 }, '¥500'],
  [{ currency: 'eur', total: 500 }, '€5.00'],
  [{ currency: undefined, total: 500 }, '$5.00'],
  [{ currency: 'no money', total: 500 }, '500 no money'],
  [{ total: undefined, amount_due: 300 }, '$3.00'],
  [{ total: 'much' }, null],
  [{ total: -250 }, '-$2.50'],
])('the invoice amount of %j is %j', (some, amount) => {
  expect(readInvoice({ ...PAID, ...some }, 0).amount).toBe(amount);
});

it.each([{}, { id: 7, number: [], created: 'now', status: {}, hosted_invoice_url: 9, status_transitions: 'x' }])(
  'an invoice of unexpected shape does not break the page: %j',
  (raw) => {
    expect(readInvoice(raw, 3)).toEqual({
      key: 'invoice-3',
      number: 'No number yet',
      at: null,
      amount: null,
      status: { text: 'Unknown', tone: 'neutral' },
      url: null,
    });
  },
);

it.each(['javascript:alert(1)', 'data:text/html,x', '/relative', 'ftp://pay.example/'])(
  'the invoice address %s does not become a link',
  (address) => {
    expect(readInvoice({ ...PAID, hosted_invoice_url: address, invoice_pdf: null }, 0).url).toBeNull();
  },
);

it.each([
  ['visa', 'Visa •••• 4242'],
  ['mastercard', 'Mastercard •••• 4242'],
  ['amex', 'American Express •••• 4242'],
  ['newcard', 'Newcard •••• 4242'],
])('a payment card of the brand %s is shown as %s', (brand, text) => {
  expect(cardText({ brand, last4: '4242' })).toBe(text);
});

describe('amounts in dollars', () => {
  it.each([
    ['20', 2000],
    [' $7.5 ', 750],
    ['7.05', 705],
    ['0', 0],
    ['0.01', 1],
    ['.5', 50],
    ['3.', 300],
    ['1,234.56', 123_456],
    ['1,234,567', 123_456_700],
    ['19.99', 1999],
    ['90071992547409.91', Number.MAX_SAFE_INTEGER],
  ])('%j is read as %i cents', (text, cents) => {
    expect(parseDollars(text)).toEqual({ cents });
  });

  it.each([
    '',
    '  ',
    '-1',
    '$-5',
    'ten',
    '1.234',
    '1,23',
    '1e3',
    '.',
    '$',
    '5 000',
    '12,34.5',
    '999999999999999999',
    'NaN',
  ])('%j is refused with a reason', (text) => {
    expect(parseDollars(text)).toEqual({ problem: expect.stringMatching(/\.$/) });
  });

  it('are formatted and read back without loss', () => {
    for (const cents of [0, 1, 10, 99, 100, 1999, 123_456]) {
      expect(parseDollars(dollarsText(cents))).toEqual({ cents });
    }
  });
});
