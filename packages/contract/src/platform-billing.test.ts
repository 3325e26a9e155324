import { describe, expect, it } from 'vitest';
import { portalOrder, RETURN_URL_MAX_CHARACTERS, spendCap } from './platform-billing.ts';

describe('a spend cap', () => {
  it.each([0, 1, 2000, Number.MAX_SAFE_INTEGER, null])('can be %s', (cents) => {
    expect(spendCap.parse({ spend_cap_cents: cents })).toEqual({ spend_cap_cents: cents });
  });

  it.each([-1, 0.5, 2 ** 53, 1e300, '500', true, [], {}])('cannot be %j', (cents) => {
    const [issue] = spendCap.safeParse({ spend_cap_cents: cents }).error?.issues ?? [];
    expect(issue?.path).toEqual(['spend_cap_cents']);
    expect(issue?.message).toMatch(/^must be a whole number of cents from 0 to \d+, or null$/);
  });

  it('is required, so that omitting it does not remove the cap', () => {
    const [issue] = spendCap.safeParse({}).error?.issues ?? [];
    expect(issue).toMatchObject({ path: ['spend_cap_cents'], message: 'is required; null removes the limit' });
  });
});

describe('the return URL of the billing portal', () => {
  it.each(['http://localhost:8080/app/', 'https://example.com', 'HTTPS://EXAMPLE.com/?a=b#c'])('can be %s', (url) => {
    expect(portalOrder.parse({ return_url: url })).toEqual({ return_url: url });
  });

  it.each([
    '',
    'example.com',
    '//example.com',
    'http:example.com',
    'http://',
    'https://a b',
    ' https://example.com',
    'https://exa\nmple.com',
    'javascript:alert(1)',
    'ftp://example.com',
    'data:text/html,hi',
    `https://example.com/${'a'.repeat(RETURN_URL_MAX_CHARACTERS)}`,
  ])('cannot be %j', (url) => {
    const [issue] = portalOrder.safeParse({ return_url: url }).error?.issues ?? [];
    expect(issue).toMatchObject({ path: ['return_url'], message: 'must be an http or https URL' });
  });

  it.each([undefined, null, 7, {}])('must be a string, not %j', (url) => {
    expect(portalOrder.safeParse({ return_url: url }).success).toBe(false);
  });
});
