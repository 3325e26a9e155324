// Pages in the navigation. Wide screens list all pages. Narrow screens have a tab per section, and the pages of a section as separate
// tabs.
import type { IconName } from '../../ui/icon.tsx';

export const NAV_PAGES = [
  { to: '/', label: 'Overview', icon: 'overview', section: '/' },
  { to: '/tunnels', label: 'Tunnels', icon: 'tunnels', section: '/tunnels' },
  { to: '/domains', label: 'Domains', icon: 'domains', section: '/domains' },
  { to: '/names', label: 'Names', icon: 'names', section: '/domains' },
  { to: '/pools', label: 'Groups', icon: 'pools', section: '/pools' },
  { to: '/keys', label: 'Keys', icon: 'keys', section: '/settings' },
  { to: '/billing', label: 'Billing', icon: 'billing', section: '/settings' },
  { to: '/settings', label: 'Settings', icon: 'settings', section: '/settings' },
] as const satisfies readonly { to: string; label: string; icon: IconName; section: string }[];

export type NavPage = (typeof NAV_PAGES)[number];

/** Returns the navigation page for a path without the base of the app. The page of a single tunnel belongs to Tunnels. */
export const pageAt = (path: string): NavPage | undefined =>
  NAV_PAGES.find(({ to }) => (to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`)));

/** Returns whether a page is the first page of its section. Phones have tabs only for first pages. */
export const isSection = ({ to, section }: NavPage): boolean => to === section;

/** Returns the pages of a path's section, the section's first page first. Empty if the section has only one page. */
export const sectionTabs = (path: string): readonly NavPage[] => {
  const page = pageAt(path);
  const pages = NAV_PAGES.filter(({ section }) => section === page?.section);
  if (pages.length < 2) return [];
  return pages.toSorted((one, other) => Number(isSection(other)) - Number(isSection(one)));
};
