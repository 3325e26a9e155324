// Frame of all signed-in pages: header, navigation, and main content.
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useApp } from '../../api/app-context.tsx';
import { meQuery, useIsBillingShown } from '../../api/queries.ts';
import { PanelBoundary } from '../../shared/panel-boundary.tsx';
import { VERSION } from '../../shared/version.ts';
import { classNames } from '../../ui/class-names.ts';
import { useMedia } from '../../ui/hooks.ts';
import { Icon } from '../../ui/icon.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Brand } from '../../ui/page-head.tsx';
import { isSection, NAV_PAGES, type NavPage, pageAt, sectionTabs } from './nav-pages.ts';
import { Shortcuts } from './shortcuts.tsx';

export const Shell = () => {
  const { pathname } = useLocation();
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
            {/* The path as key closes an open dialog when the browser's Back button leaves the page. */}
            <Shortcuts key={pathname} />
            {/* A plain link, because the platform serves the guide outside the dashboard. */}
            <a href="/docs/guide/" className="rounded-md px-2 py-1.5 text-muted hover:bg-sunken hover:text-ink">
              Docs
            </a>
            <AccountMenu />
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} className="mx-auto max-w-6xl px-4 pt-6 pb-8 sm:px-6 sm:pt-8 md:pb-16">
        <SectionTabs />
        <PanelBoundary title="Couldn't load this page">
          <Outlet />
        </PanelBoundary>
      </main>
      {/* On a phone, the navigation covers the end of the page. */}
      <footer className="mx-auto max-w-6xl px-4 pb-24 text-muted text-sm sm:px-6 md:pb-6">Hatchway {VERSION}</footer>
    </>
  );
};

/** Moves the keyboard focus to the page's content after a navigation, instead of leaving it on the clicked link. */
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

/** Media query for screens wide enough to list all pages in one line. */
const WIDE = '(width >= 64rem)';

const linkClass = (isHere: boolean): string =>
  isHere ? 'text-accent font-medium md:bg-accent-soft' : 'text-muted hover:text-ink md:hover:bg-sunken';

/**
 * Returns the pages to show. The Billing entry takes up space invisibly until the dashboard knows whether to show it, so that the
 * navigation does not move.
 */
const useShownPages = (pages: readonly NavPage[]) => {
  const isBillingShown = useIsBillingShown();
  return pages
    .filter(({ to }) => to !== '/billing' || isBillingShown !== false)
    .map((page) => ({ page, isKnown: page.to !== '/billing' || isBillingShown !== undefined }));
};

/** Main navigation: in the header on wide screens, at the bottom on phones. A single list and landmark for both. */
const Nav = () => {
  const here = pageAt(useLocation().pathname);
  const isWide = useMedia(WIDE);
  const items = useShownPages(isWide ? NAV_PAGES : NAV_PAGES.filter(isSection));
  return (
    <nav
      aria-label="Main"
      className="fixed inset-x-0 bottom-0 z-20 border-line border-t bg-surface pb-[env(safe-area-inset-bottom)] md:static md:border-0 md:bg-transparent md:pb-0"
    >
      <ul className="flex md:gap-1">
        {items.map(({ page: { to, label, icon }, isKnown }) => (
          <li key={to} className={classNames('min-w-0 flex-1 md:flex-none', !isKnown && 'invisible')}>
            <Link
              to={to}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              {...(!isWide && here?.section === to ? { 'aria-current': 'true' as const } : {})}
              className={classNames(
                'flex flex-col items-center gap-0.5 py-2 text-xs focus-visible:-outline-offset-2 md:flex-row md:gap-1.5 md:rounded-md md:px-2 md:py-1.5 md:text-base xl:px-2.5',
                linkClass((isWide ? here?.to : here?.section) === to),
              )}
            >
              <Icon name={icon} className="size-5 md:hidden xl:block xl:size-4" />
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
};

/** Tabs for the pages of a section, shown where the navigation links only to sections. */
const SectionTabs = () => {
  const { pathname } = useLocation();
  const isWide = useMedia(WIDE);
  const here = pageAt(pathname);
  const tabs = useShownPages(sectionTabs(pathname));
  if (isWide || tabs.length === 0) return null;
  return (
    <nav aria-label="Section" className="-mt-2 mb-5 border-line border-b">
      <ul className="flex gap-1">
        {tabs.map(({ page: { to, label }, isKnown }) => (
          <li key={to} className={classNames(!isKnown && 'invisible')}>
            <Link
              to={to}
              activeOptions={{ includeSearch: false }}
              className={classNames(
                '-mb-px block border-b-2 px-3 py-2',
                here?.to === to
                  ? 'border-accent font-medium text-accent'
                  : 'border-transparent text-muted hover:text-ink',
              )}
            >
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
};

/** Menu with the signed-in account and a sign-out entry. */
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
        // The tab forgets the session even if the request fails. An unreachable platform keeps the session until it expires.
        { label: 'Sign out', onSelect: () => void session.signOut().catch(() => {}) },
      ]}
    />
  );
};
