import { describe, expect, it } from 'vitest';
import { CATALOGUE, type CatalogueEntry, ERROR_CODES, isErrorCode } from './catalogue.ts';

const entries: [string, CatalogueEntry][] = Object.entries(CATALOGUE);

const placeholdersOf = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');

/** Gateway errors that are not temporary: the local service, its tunnel or the payment has to be corrected first. */
const STAYS_UNTIL_CORRECTED: ReadonlySet<string> = new Set([
  'LOCAL_MALFORMED',
  'CLIENT_LOCAL_CERTIFICATE',
  'BILLING_PROCESSOR_REFUSED',
  'SERVER_REFUSED',
]);

/** Errors with a text that already names the expected value, so that a hint would only repeat the text. */
const WITHOUT_HINT: ReadonlySet<string> = new Set([
  'CONFIG_SYNTAX',
  'CONFIG_MISSING_VALUE',
  'CONFIG_WRONG_VALUE',
  'EDGE_NAME_INVALID',
]);

describe('the error catalogue', () => {
  it.each(entries)('has a text and a next step for %s', (code, { text, next }) => {
    expect(text).toMatch(/\S/);
    // The text is used in lines of the form "error: text"; the next step is a separate sentence.
    expect(text).not.toMatch(/[.\s]$/);
    if (WITHOUT_HINT.has(code)) expect(next).toBe('');
    else expect(next).toMatch(/\S\.$/);
  });

  it.each(entries)('uses no placeholder in the next step of %s that its text does not have', (_, { text, next }) => {
    expect(placeholdersOf(text)).toEqual(expect.arrayContaining(placeholdersOf(next)));
  });

  it.each(entries)('has well-formed placeholders, an HTTP error status and a valid code for %s', (code, entry) => {
    const rest = (entry.text + entry.next).replace(/\{\w+\}/g, '');
    expect(rest).not.toMatch(/[{}]/);
    expect(entry.status).toBeGreaterThanOrEqual(400);
    expect(entry.status).toBeLessThan(600);
    expect(code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
  });

  it('knows its own codes, and no inherited property names', () => {
    expect(ERROR_CODES).toHaveLength(entries.length);
    expect(ERROR_CODES.every(isErrorCode)).toBe(true);
    for (const stranger of ['toString', '__proto__', 'constructor', '', 'internal']) {
      expect(isErrorCode(stranger)).toBe(false);
    }
  });

  it('marks temporary gateway errors as retryable', () => {
    for (const [code, entry] of entries) {
      if ([502, 503, 504, 429].includes(entry.status)) {
        expect([code, entry.retryable]).toEqual([code, !STAYS_UNTIL_CORRECTED.has(code)]);
      }
    }
  });
});
