import { expect, it } from 'vitest';
import { AlertUrls } from './member-index.rules.ts';

it('an alert URL is listed once for several members, until the last of these members has left', () => {
  const urls = new AlertUrls();
  urls.add('https://a.test');
  urls.add('https://a.test');
  urls.add('https://b.test');
  urls.add(null);
  expect(urls.with(null)).toEqual(['https://a.test', 'https://b.test']);
  urls.remove('https://a.test');
  urls.remove(null);
  expect(urls.with(null)).toEqual(['https://a.test', 'https://b.test']);
  urls.remove('https://a.test');
  expect(urls.with(null)).toEqual(['https://b.test']);
});

it('the alert URL of a member that has just left is listed, but not twice', () => {
  const urls = new AlertUrls();
  expect(urls.with('https://gone.test')).toEqual(['https://gone.test']);
  urls.add('https://a.test');
  expect(urls.with('https://gone.test')).toEqual(['https://a.test', 'https://gone.test']);
  expect(urls.with('https://a.test')).toEqual(['https://a.test']);
});
