import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isHttpUrl, url } from './values.ts';

it('takes the http and https URLs that the URL parser takes, and no other text', () => {
  const texts = fc.oneof(
    fc.webUrl(),
    fc.string(),
    fc.string().map((rest) => `https://${rest}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(isHttpUrl(text)).toBe(/^https?:\/\//i.test(text) && URL.canParse(text));
    }),
  );
});

it.each(['ftp://a', 'a.example', '', 'https://'])('refuses %j', (text) => {
  expect(url({ orEmpty: false }).safeParse(text).success).toBe(false);
});
