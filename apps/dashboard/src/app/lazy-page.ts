// A page that is loaded when it is first needed. Its file cannot be had while the platform is away, and is gone when a newer
// build has taken the place of the one that this tab runs.
import { type AsyncRouteComponent, lazyRouteComponent } from '@tanstack/react-router';
import { Fault } from '@tunnel/errors';
import type { ComponentType } from 'react';

const RELOADED_KEY = 'reloaded-for-new-build';
/** Nobody wants a page that loads itself again and again. */
const RELOAD_AGAIN_AFTER_MS = 60_000;

/** The modules are of unknown type: pages use the types of the router, which must not depend on theirs in turn. */
export const lazyPage = (load: () => Promise<unknown>, name: string): AsyncRouteComponent<object> =>
  lazyRouteComponent(() => load().catch(explain) as Promise<Record<string, ComponentType<object>>>, name);

const explain = async (cause: unknown): Promise<never> => {
  const url = window.location.origin;
  const isThere = await fetch('/app/start.js', { method: 'HEAD', cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );
  if (!isThere) throw new Fault('CLIENT_PLATFORM_UNREACHABLE', { url, reason: 'a page was not loaded' }, { cause });
  if (!mayReload()) throw cause;
  window.location.reload();
  return new Promise<never>(() => {});
};

const mayReload = (): boolean => {
  const last = Number(sessionStorage.getItem(RELOADED_KEY) ?? 0);
  sessionStorage.setItem(RELOADED_KEY, String(Date.now()));
  return Date.now() - last > RELOAD_AGAIN_AFTER_MS;
};
