// The frame of all pages after sign-in: head, navigation, and the one main part.
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { classNames } from '../ui/class-names.ts';
import { Icon, type IconName } from '../ui/icon.tsx';
import { Menu } from '../ui/menu.tsx';
import { Brand } from '../ui/page-head.tsx';
import { useApp } from './app-context.tsx';
import { PanelBoundary } from './panel-boundary.tsx';
import { meQuery, useIsBillingShown } from './queries.ts';

export const Shell = () => {
  const main = useFocusAfterChange();
  return (
    <>
      <a
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
        className="-translate-y-20 fixed top-2 left-2 z-50 rounded-md bg-accent px-3 py-2 font-medium text-on-accent focus:translate-y-0"
      >
        Skip to content
      </a>
      <header className="border-line border-b bg-surface">
        <div className="mx-auto flex h-14 max-w-6xl items-center justify-between gap-4 px-4 sm:px-6">
          <Brand />
          <div className="md:flex-1 md:pl-2">
            <Nav />
          </div>
          <div className="flex items-center gap-2">
            {/* No page of the dashboard: the platform's own. */}
            <a href="/docs" className="rounded-md px-2 py-1.5 text-muted hover:bg-sunken hover:text-ink">
              Docs
            </a>
            <AccountMenu />
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} className="mx-auto max-w-6xl px-4 pt-6 pb-28 sm:px-6 sm:pt-8 md:pb-16">
        <PanelBoundary title="Couldn't load this page">
          <Outlet />
        </PanelBoundary>
      </main>
    </>
  );
};

/** After a change of page the keyboard goes on from its content, not from the link that was pressed. */
const useFocusAfterChange = () => {
  const main = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return main;
};

/** The pages of the dashboard: in the head of a wide page, at the foot of a phone. One list, one landmark. */
const NAV_ITEMS = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/tunnels', label: 'Tunnels', icon: 'tunnels' },
  { to: '/domains', label: 'Domains', icon: 'domains' },
  { to: '/pools', label: 'Pools', icon: 'pools' },
  { to: '/keys', label: 'Keys', icon: 'keys' },
  { to: '/billing', label: 'Billing', icon: 'billing' },
  { to: '/settings', label: 'Settings', icon: 'settings' },
] as const satisfies readonly { to: string; label: string; icon: IconName }[];

const Nav = () => {
  const isBillingShown = useIsBillingShown();
  const items = NAV_ITEMS.filter(({ to }) => to !== '/billing' || isBillingShown !== false);
  return (
    <nav
      aria-label="Main"
      className="fixed inset-x-0 bottom-0 z-20 border-line border-t bg-surface pb-[env(safe-area-inset-bottom)] md:static md:border-0 md:bg-transparent md:pb-0"
    >
      <ul className="flex md:gap-0.5 lg:gap-1">
        {items.map(({ to, label, icon }) => (
          // What may not be there keeps its place until that is known: nothing flashes, nothing moves.
          <li
            key={to}
            className={classNames(
              'min-w-0 flex-1 md:flex-none',
              to === '/billing' && isBillingShown === undefined && 'invisible',
            )}
          >
            <Link
              to={to}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              className="flex flex-col items-center gap-0.5 py-2 text-[0.625rem] leading-4 hover:text-ink focus-visible:-outline-offset-2 md:flex-row md:gap-1.5 md:rounded-md md:px-1.5 md:py-1.5 md:text-base md:leading-5 lg:px-2.5"
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
};

/** Who is signed in, and the way out. */
const AccountMenu = () => {
  const { api, session } = useApp();
  const me = useQuery(meQuery(api)).data;
  const navigate = useNavigate();
  const name = me?.display_name ?? me?.email ?? '';
  return (
    <Menu
      label={name === '' ? 'Account' : `Account of ${name}`}
      buttonClass="flex h-9 items-center gap-2 rounded-full border border-line bg-surface pr-2 pl-1 text-muted hover:border-edge hover:text-ink"
      button={
        <>
          <span
            aria-hidden="true"
            className="grid size-7 place-items-center rounded-full bg-accent-soft font-semibold text-accent text-xs uppercase"
          >
            {name.charAt(0)}
          </span>
          <Icon name="chevron" />
        </>
      }
      head={
        <>
          <p className="text-muted text-xs">Signed in as</p>
          <p className="truncate font-medium" title={me?.email}>
            {me?.email}
          </p>
        </>
      }
      items={[
        { label: 'Settings', onSelect: () => void navigate({ to: '/settings' }) },
        // The page forgets in any case; a platform that is away forgets when the session runs out.
        { label: 'Log out', onSelect: () => void session.signOut().catch(() => {}) },
      ]}
    />
  );
};
