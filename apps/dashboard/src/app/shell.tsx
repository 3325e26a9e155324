// The frame of all pages after sign-in: head, places, and the one main part.
import { Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { AccountMenu } from './account-menu.tsx';
import { Brand } from './brand.tsx';
import { Nav } from './nav.tsx';
import { PanelBoundary } from './panel-boundary.tsx';

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
        Skip to the content
      </a>
      <header className="border-line border-b bg-surface">
        <div className="mx-auto flex h-14 max-w-6xl items-center justify-between gap-4 px-4 sm:px-6">
          <Brand />
          <div className="md:flex-1 md:pl-2">
            <Nav />
          </div>
          <AccountMenu />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} className="mx-auto max-w-6xl px-4 pt-6 pb-28 sm:px-6 sm:pt-8 md:pb-16">
        <PanelBoundary title="This page cannot be shown">
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
