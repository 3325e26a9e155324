// The composition root of the dashboard: makes its parts, joins them, and starts the session.
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { type ReactNode, StrictMode } from 'react';
import { createApi, createOpenClient } from './api.ts';
import { AppProvider } from './app-context.tsx';
import { createQueryClient } from './query-client.ts';
import { Reach } from './reach.ts';
import { createAppRouter } from './router.tsx';
import { Session, type SessionWorld } from './session.ts';
import { createSessionWorld, openTabNews } from './session-world.ts';
import { followOtherTabs } from './theme.ts';

/** More than the platform itself waits for an edge, and that for a service, when a request is replayed: 35 s. */
const ANSWER_WITHIN_MS = 40_000;

export const createApp = (): ReactNode => {
  const { origin } = window.location;
  // A platform that takes a call and never answers is away, too; a browser would wait for minutes.
  const ask = (url: string, request: RequestInit): Promise<Response> =>
    fetch(url, { ...request, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  const reach: Reach = new Reach(
    { probe: () => probe(ask, origin), after: (ms, act) => void setTimeout(act, ms) },
    () => {
      void queries.invalidateQueries();
      void router.invalidate();
      if (session.state.phase === 'starting') session.start();
    },
  );
  const noteError = (error: unknown): void => reach.noteError(error);
  const queries = createQueryClient(noteError);
  const news = openTabNews();
  const world = createSessionWorld(createOpenClient(origin, ask), news);
  const session = new Session(telling(world, noteError));
  const api = createApi(origin, ask, session);
  const router = createAppRouter({ session, queries });
  news.onNews((message) => session.hear(message));
  window.addEventListener('online', () => void reach.probeNow());
  followOtherTabs();
  session.start();
  return (
    <StrictMode>
      <AppProvider value={{ api, session, reach }}>
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

/** A renewal that fails is no query of any page, but says as much about the platform. */
const telling = (world: SessionWorld, noteError: (error: unknown) => void): SessionWorld => ({
  ...world,
  refresh: () =>
    world.refresh().catch((error: unknown) => {
      noteError(error);
      throw error;
    }),
});
