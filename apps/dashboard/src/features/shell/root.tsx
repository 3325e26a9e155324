// Root of all pages, signed in or not: the banner for an unreachable platform, lazy loading of pages, and the views for loading and
// failed pages.
import { type AsyncRouteComponent, type ErrorComponentProps, lazyRouteComponent, Outlet } from '@tanstack/react-router';
import { Fault } from '@tunnel/errors';
import { type ComponentType, useEffect } from 'react';
import { useApp, useIsAway } from '../../api/app-context.tsx';
import { Spinner } from '../../ui/icon.tsx';
import { Problem } from '../../ui/problem.tsx';

export const Root = () => (
  <>
    <AwayBanner />
    <Outlet />
  </>
);

export const PagePending = () => (
  <div role="status" className="grid min-h-[50vh] place-items-center text-muted">
    <Spinner />
    <span className="sr-only">Loading</span>
  </div>
);

/** Error view of a page. Reports the error to the reachability check, which reloads failed pages when the platform is back. */
export const PageProblem = ({ error, reset }: ErrorComponentProps) => {
  const { reachability } = useApp();
  useEffect(() => reachability.noteError(error), [reachability, error]);
  return (
    <div className="mx-auto max-w-xl p-6">
      <Problem title="Couldn't load this page" error={error} onRetry={reset} />
    </div>
  );
};

/** Banner shown while the platform is unreachable. */
const AwayBanner = () => {
  const isAway = useIsAway();
  return (
    <div role="status" className="sticky top-0 z-40">
      {isAway && (
        <p className="flex items-center justify-center gap-2.5 border-warn/30 border-b bg-warn-soft px-4 py-2 text-center text-sm text-warn">
          <Spinner />
          <span>Can't reach the platform. This page may be out of date. Retrying every 2 seconds.</span>
        </p>
      )}
    </div>
  );
};

const RELOADED_KEY = 'reloaded-for-new-build';
/** Minimum time between two automatic reloads, so that the page cannot reload in a loop. */
const RELOAD_AGAIN_AFTER_MS = 60_000;

/**
 * Creates a page component that is loaded when first needed. Loading fails while the platform is unreachable, and after a newer build has
 * replaced the files of the build in this tab. The modules have an unknown type, because pages use the router's types, which must not
 * depend on the pages' types in turn.
 */
export const lazyPage = (load: () => Promise<unknown>, name: string): AsyncRouteComponent<object> =>
  lazyRouteComponent(() => load().catch(explain) as Promise<Record<string, ComponentType<object>>>, name);

const explain = async (cause: unknown): Promise<never> => {
  const url = window.location.origin;
  const isThere = await fetch('/app/start.js', { method: 'HEAD', cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );
  if (!isThere) throw new Fault('CLIENT_PLATFORM_UNREACHABLE', { url, reason: 'the page failed to load' }, { cause });
  if (!mayReload()) throw cause;
  window.location.reload();
  return new Promise<never>(() => {});
};

const mayReload = (): boolean => {
  const last = Number(sessionStorage.getItem(RELOADED_KEY) ?? 0);
  sessionStorage.setItem(RELOADED_KEY, String(Date.now()));
  return Date.now() - last > RELOAD_AGAIN_AFTER_MS;
};
