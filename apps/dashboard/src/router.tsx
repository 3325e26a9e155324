// The dashboard's pages and their paths. The code of each page is a separate file, loaded when the page is first needed.
import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, createRouter, redirect } from '@tanstack/react-router';
import type { Session } from './api/session.ts';
import { lazyPage, PagePending, PageProblem, Root } from './features/shell/root.tsx';
import { parseSearch, returnTo, stringifySearch, textFields } from './shared/page-url.ts';

export interface RouterContext {
  readonly session: Session;
  readonly queries: QueryClient;
}

const root = createRootRouteWithContext<RouterContext>()({ component: Root });

// --- without a session ---

const signedOut = createRoute({
  getParentRoute: () => root,
  id: 'signed-out',
  component: lazyPage(() => import('./features/auth/layout.tsx'), 'AuthLayout'),
});
// The search validator is a named constant because TypeScript loses its types if it is written inline in a route with beforeLoad.
const loginSearch = textFields('next', 'email');
const login = createRoute({
  getParentRoute: () => signedOut,
  path: '/login',
  validateSearch: loginSearch,
  beforeLoad: async ({ context }) => {
    await context.session.ready();
  },
  component: lazyPage(() => import('./features/auth/login-page.tsx'), 'LoginPage'),
});
const signup = createRoute({
  getParentRoute: () => signedOut,
  path: '/signup',
  validateSearch: textFields('invite'),
  component: lazyPage(() => import('./features/auth/signup-page.tsx'), 'SignupPage'),
});
const checkMail = createRoute({
  getParentRoute: () => signedOut,
  path: '/check-mail',
  component: lazyPage(() => import('./features/auth/check-mail-page.tsx'), 'CheckMailPage'),
});
const verify = createRoute({
  getParentRoute: () => signedOut,
  path: '/verify',
  validateSearch: textFields('token', 'signed_in'),
  component: lazyPage(() => import('./features/auth/verify-page.tsx'), 'VerifyPage'),
});
const forgot = createRoute({
  getParentRoute: () => signedOut,
  path: '/forgot',
  component: lazyPage(() => import('./features/auth/forgot-page.tsx'), 'ForgotPage'),
});
const reset = createRoute({
  getParentRoute: () => signedOut,
  path: '/reset-password',
  validateSearch: textFields('token'),
  component: lazyPage(() => import('./features/auth/reset-page.tsx'), 'ResetPage'),
});

// --- with one ---

interface Entry {
  readonly context: RouterContext;
  readonly location: { readonly href: string };
  readonly preload: boolean;
}

const needSession = async ({ context, location, preload }: Entry): Promise<void> => {
  const { phase } = await context.session.ready();
  if (phase === 'signed-out' && !preload) redirect({ to: '/login', search: nextOf(location.href), throw: true });
};
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  beforeLoad: needSession,
  component: lazyPage(() => import('./features/shell/shell.tsx'), 'Shell'),
});
// An app's consent question appears without the navigation, like the sign-in page, so that the only controls are the two answers.
const consentFrame = createRoute({
  getParentRoute: () => root,
  id: 'consent-frame',
  beforeLoad: needSession,
  component: lazyPage(() => import('./features/auth/layout.tsx'), 'WideAuthLayout'),
});
const consent = createRoute({
  getParentRoute: () => consentFrame,
  path: '/consent',
  validateSearch: textFields('request'),
  component: lazyPage(() => import('./features/consent/page.tsx'), 'ConsentPage'),
});
const overview = createRoute({
  getParentRoute: () => shell,
  path: '/',
  component: lazyPage(() => import('./features/overview/page.tsx'), 'OverviewPage'),
});
const tunnels = createRoute({
  getParentRoute: () => shell,
  path: '/tunnels',
  validateSearch: textFields('protocol', 'state', 'q', 'address'),
  component: lazyPage(() => import('./features/tunnels/page.tsx'), 'TunnelsPage'),
});
const tunnel = createRoute({
  getParentRoute: () => shell,
  path: '/tunnels/$id',
  validateSearch: textFields('request'),
  component: lazyPage(() => import('./features/tunnels/tunnel-page.tsx'), 'TunnelPage'),
});
const domains = createRoute({
  getParentRoute: () => shell,
  path: '/domains',
  component: lazyPage(() => import('./features/domains/page.tsx'), 'DomainsPage'),
});
const domain = createRoute({
  getParentRoute: () => shell,
  path: '/domains/$id',
  component: lazyPage(() => import('./features/domains/domain-page.tsx'), 'DomainPage'),
});
const names = createRoute({
  getParentRoute: () => shell,
  path: '/names',
  component: lazyPage(() => import('./features/names/page.tsx'), 'NamesPage'),
});
const pools = createRoute({
  getParentRoute: () => shell,
  path: '/pools',
  component: lazyPage(() => import('./features/pools/page.tsx'), 'PoolsPage'),
});
const keys = createRoute({
  getParentRoute: () => shell,
  path: '/keys',
  component: lazyPage(() => import('./features/keys/page.tsx'), 'KeysPage'),
});
const billing = createRoute({
  getParentRoute: () => shell,
  path: '/billing',
  component: lazyPage(() => import('./features/billing/page.tsx'), 'BillingPage'),
});
const settings = createRoute({
  getParentRoute: () => shell,
  path: '/settings',
  component: lazyPage(() => import('./features/settings/page.tsx'), 'SettingsPage'),
});
const anythingElse = createRoute({
  getParentRoute: () => shell,
  path: '$',
  component: lazyPage(() => import('./features/shell/not-found.tsx'), 'NotFound'),
});

const routeTree = root.addChildren([
  signedOut.addChildren([login, signup, checkMail, verify, forgot, reset]),
  consentFrame.addChildren([consent]),
  shell.addChildren([overview, tunnels, tunnel, domains, domain, names, pools, keys, billing, settings, anythingElse]),
]);

const BASE = '/app';

/** Returns the `next` parameter for the sign-in page. `href` is the router's path, without the base /app. */
const nextOf = (href: string): { next?: string } => {
  const next = returnTo(BASE + href);
  return next === undefined ? {} : { next };
};

const makeRouter = (context: RouterContext) =>
  createRouter({
    routeTree,
    context,
    basepath: BASE,
    parseSearch,
    stringifySearch,
    scrollRestoration: true,
    defaultPreload: 'intent',
    defaultPendingMs: 300,
    defaultPendingComponent: PagePending,
    defaultErrorComponent: PageProblem,
  });

export const createAppRouter = (context: RouterContext): ReturnType<typeof makeRouter> => {
  const router = makeRouter(context);
  const { session, queries } = context;
  session.subscribe(() => {
    const { state } = session;
    // A visitor who arrived without a session is redirected by the route's beforeLoad, which knows the requested page.
    if (state.phase !== 'signed-out' || state.reason === 'none') return;
    const { location, matches } = router.state;
    const isOn = (...ids: readonly string[]): boolean => matches.some(({ routeId }) => ids.includes(routeId));
    // After a deliberate sign-out, the next user starts on the overview. An app's consent question is kept, because the user may have
    // signed out to answer with a different account.
    const left = state.reason === 'ended' || isOn(consentFrame.id) ? nextOf(location.href) : {};
    const onPage = isOn(shell.id, consentFrame.id);
    const gone = onPage ? router.navigate({ to: '/login', search: left }) : Promise.resolve();
    // Data of the previous account must not be visible to the next account.
    void gone.finally(() => queries.clear());
  });
  return router;
};

declare module '@tanstack/react-router' {
  /**
   * State of a browser history entry. Email addresses and invitation tokens are stored here instead of the URL, because browser histories
   * and screenshots expose URLs.
   */
  interface HistoryState {
    email?: string;
    invite?: string;
  }
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
