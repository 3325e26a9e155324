// Money as people type it: dollars in, whole cents out.

export type Dollars = { readonly cents: number } | { readonly problem: string };

const FORM = /^\$?\s*(\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d*))?$/;

/** The most that is kept exactly. */
const MAX_CENTS = Number.MAX_SAFE_INTEGER;

export const parseDollars = (text: string): Dollars => {
  const typed = text.trim();
  if (typed === '') return { problem: 'Type an amount in dollars, for example 20 or 7.50.' };
  if (/^-|^\$\s*-/.test(typed)) return { problem: 'The amount cannot be below zero.' };
  const [matched, whole = '', fraction = ''] = FORM.exec(typed) ?? [];
  if (matched === undefined || (whole === '' && fraction === '')) {
    return { problem: 'This is not an amount in dollars. Write it like 20 or 7.50.' };
  }
  if (fraction.length > 2) return { problem: 'Cents are the smallest part: at most two digits after the point.' };
  const cents = Number(whole.replaceAll(',', '')) * 100 + Number(fraction.padEnd(2, '0'));
  return cents <= MAX_CENTS ? { cents } : { problem: 'The amount is too large.' };
};

/** For the field that it is typed in: 2000 is "20.00". */
export const dollarsText = (cents: number): string => (cents / 100).toFixed(2);
