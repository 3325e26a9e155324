import { expect, it } from 'vitest';
import { isSection, NAV_PAGES, pageAt, sectionTabs } from './nav-pages.ts';

it('the navigation on a phone has five tabs', () => {
  expect(NAV_PAGES.filter(isSection).map(({ label }) => label)).toEqual([
    'Overview',
    'Tunnels',
    'Domains',
    'Groups',
    'Settings',
  ]);
});

it.each([
  ['/', 'Overview'],
  ['/tunnels', 'Tunnels'],
  ['/tunnels/abc', 'Tunnels'],
  ['/names', 'Names'],
  ['/nowhere', undefined],
  ['/keysmith', undefined],
])('the path %s belongs to the page %s', (path, label) => {
  expect(pageAt(path)?.label).toBe(label);
});

it.each([
  ['/keys', ['Settings', 'Keys', 'Billing']],
  ['/settings', ['Settings', 'Keys', 'Billing']],
  ['/domains/abc', ['Domains', 'Names']],
  ['/tunnels', []],
  ['/nowhere', []],
])('the section of %s has the tabs %j', (path, labels) => {
  expect(sectionTabs(path).map(({ label }) => label)).toEqual(labels);
});
