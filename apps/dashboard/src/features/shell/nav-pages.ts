// The pages of the navigation. A wide screen lists all of them; a narrower one has a tab for each section, and the pages of a section as tabs of their own.
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

/** The page that a path belongs to, without the base of the app. A tunnel's own page belongs to Tunnels. */
export const pageAt = (path: string): NavPage | undefined =>
  NAV_PAGES.find(({ to }) => (to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`)));

/** Whether a page is the first of its section: the one that a phone has a tab for. */
export const isSection = ({ to, section }: NavPage): boolean => to === section;

/** The pages of the section that a path belongs to, the section's own page first. Empty: the section has one page only. */
export const sectionTabs = (path: string): readonly NavPage[] => {
  const page = pageAt(path);
  const pages = NAV_PAGES.filter(({ section }) => section === page?.section);
  if (pages.length < 2) return [];
  return pages.toSorted((one, other) => Number(isSection(other)) - Number(isSection(one)));
};
