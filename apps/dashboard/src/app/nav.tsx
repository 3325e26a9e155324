// The six places of the dashboard: in the head of a wide page, at the foot of a phone. One list, one landmark.
import { Link } from '@tanstack/react-router';
import { Icon, type IconName } from '../ui/icon.tsx';

const PLACES = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/tunnels', label: 'Tunnels', icon: 'tunnels' },
  { to: '/pools', label: 'Pools', icon: 'pools' },
  { to: '/keys', label: 'Keys', icon: 'keys' },
  { to: '/billing', label: 'Billing', icon: 'billing' },
  { to: '/settings', label: 'Settings', icon: 'settings' },
] as const satisfies readonly { to: string; label: string; icon: IconName }[];

export const Nav = () => (
  <nav
    aria-label="Main"
    className="fixed inset-x-0 bottom-0 z-20 border-line border-t bg-surface pb-[env(safe-area-inset-bottom)] md:static md:border-0 md:bg-transparent md:pb-0"
  >
    <ul className="grid grid-cols-6 md:flex md:gap-1">
      {PLACES.map(({ to, label, icon }) => (
        <li key={to}>
          <Link
            to={to}
            activeOptions={{ exact: to === '/', includeSearch: false }}
            className="flex flex-col items-center gap-0.5 py-2 text-[0.6875rem] leading-4 hover:text-ink focus-visible:-outline-offset-2 md:flex-row md:gap-1.5 md:rounded-md md:px-2.5 md:py-1.5 md:text-base md:leading-5"
            activeProps={{ className: 'text-accent font-medium md:bg-accent-soft' }}
            inactiveProps={{ className: 'text-muted md:hover:bg-sunken' }}
          >
            <Icon name={icon} className="size-5 md:hidden lg:block lg:size-4" />
            {label}
          </Link>
        </li>
      ))}
    </ul>
  </nav>
);
