import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isHttpUrl, url } from './values.ts';

it('an http URL is valid if and only if the URL parser accepts it', () => {
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

it.each(['ftp://a', 'a.example', '', 'https://'])('the URL %j is refused', (text) => {
  expect(url({ orEmpty: false }).safeParse(text).success).toBe(false);
});
