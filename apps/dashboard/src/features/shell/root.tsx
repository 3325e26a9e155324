// What is around every page, signed in or not; how a page is loaded, and what is shown while it is on its way, or cannot be shown.
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

/** When the platform is back, all that failed is tried again. */
export const PageProblem = ({ error, reset }: ErrorComponentProps) => {
  const { reachability } = useApp();
  useEffect(() => reachability.noteError(error), [reachability, error]);
  return (
    <div className="mx-auto max-w-xl p-6">
      <Problem title="Couldn't load this page" error={error} onRetry={reset} />
    </div>
  );
};

/** Says that the platform is away, for as long as it is. */
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
/** Nobody wants a page that loads itself again and again. */
const RELOAD_AGAIN_AFTER_MS = 60_000;

/**
 * A page that is loaded when it is first needed. Its file cannot be had while the platform is away, and is gone when a newer
 * build has taken the place of the one that this tab runs. The modules are of unknown type: pages use the types of the router,
 * which must not depend on theirs in turn.
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
