// The pages and their addresses. Each page is a file of its own that is loaded when it is first needed.
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
// Has a name because the types of a route that has beforeLoad lose it otherwise.
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
// A question of somebody else's app stands alone, as a login does: no way around it looks like an answer.
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

/** `href` as the router has it: without the base. */
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
    // Who came without a session is led to the login by the page, which knows where they wanted to go.
    if (state.phase !== 'signed-out' || state.reason === 'none') return;
    const { location, matches } = router.state;
    const isOn = (...ids: readonly string[]): boolean => matches.some(({ routeId }) => ids.includes(routeId));
    // An app's question waits for whoever logs in next: one may have logged out to answer it for another account.
    const left = state.reason === 'ended' || isOn(consentFrame.id) ? nextOf(location.href) : {};
    const onPage = isOn(shell.id, consentFrame.id);
    const gone = onPage ? router.navigate({ to: '/login', search: left }) : Promise.resolve();
    // Nothing of the one may be seen by the next.
    void gone.finally(() => queries.clear());
  });
  return router;
};

declare module '@tanstack/react-router' {
  /** Neither an address nor the token of an invite stays in the URL: histories and screens keep what is shown there. */
  interface HistoryState {
    email?: string;
    invite?: string;
  }
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
