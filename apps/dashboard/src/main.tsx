// Entry point of the dashboard: creates the API client, the session, the query cache and the router, connects them, and starts the
// session.
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { type ReactNode, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createApi, createOpenClient, createQueryClient } from './api/api.ts';
import { AppProvider } from './api/app-context.tsx';
import { Reachability } from './api/reachability.ts';
import { createBrowserEnvironment, openTabChannel, Session, type SessionEnvironment } from './api/session.ts';
import { createAppRouter } from './router.tsx';
import { followOtherTabs } from './shared/theme.ts';

/**
 * Time limit for an API response. A replayed request takes longest: the platform waits 35 s for the edge, and the edge waits 30 s for the
 * local service.
 */
const ANSWER_WITHIN_MS = 40_000;

export const createApp = (): ReactNode => {
  const { origin } = window.location;
  // A platform that accepts a request but never responds also counts as unreachable. Without a time limit, the browser would wait for
  // minutes.
  const ask = (url: string, request: RequestInit): Promise<Response> =>
    fetch(url, { ...request, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  const reachability: Reachability = new Reachability(
    { probe: () => probe(ask, origin), after: (ms, act) => void setTimeout(act, ms) },
    () => {
      void queries.invalidateQueries();
      void router.invalidate();
      if (session.state.phase === 'starting') session.start();
    },
  );
  const noteError = (error: unknown): void => reachability.noteError(error);
  const queries = createQueryClient(noteError);
  const channel = openTabChannel();
  const environment = createBrowserEnvironment(createOpenClient(origin, ask), channel);
  const session = new Session(reportingErrors(environment, noteError));
  const api = createApi(origin, ask, session);
  const router = createAppRouter({ session, queries });
  channel.onMessage((message) => session.receive(message));
  window.addEventListener('online', () => void reachability.probeNow());
  followOtherTabs();
  session.start();
  return (
    <StrictMode>
      <AppProvider value={{ api, session, reachability }}>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </AppProvider>
    </StrictMode>
  );
};

const probe = async (ask: (url: string, request: RequestInit) => Promise<Response>, origin: string): Promise<void> => {
  const { ok } = await ask(`${origin}/health/db`, { cache: 'no-store' });
  if (!ok) throw new Error('not yet');
};

/**
 * Reports failed token renewals to the reachability check. A renewal is not a query of a page, so the query cache's error handler never
 * sees it.
 */
const reportingErrors = (environment: SessionEnvironment, noteError: (error: unknown) => void): SessionEnvironment => ({
  ...environment,
  refresh: () =>
    environment.refresh().catch((error: unknown) => {
      noteError(error);
      throw error;
    }),
});

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(createApp());
