// What an app may be allowed to do, in the words of the pages that ask and tell.
import type { OauthScope } from '@tunnel/contract';

export interface ScopeText {
  /** Begins with a verb. */
  readonly title: string;
  readonly detail: string;
}

export const SCOPE_TEXTS: Readonly<Record<OauthScope, ScopeText>> = {
  'tunnels:read': {
    title: 'See your tunnels',
    detail: 'And pools, usage, plan and key labels. Never a key itself.',
  },
  'requests:read': {
    title: 'Read captured requests',
    detail: 'What visitors sent, and what your apps answered.',
  },
  'requests:replay': {
    title: 'Replay requests',
    detail: 'Sends a captured request to your app once more.',
  },
  'tunnels:close': {
    title: 'Close tunnels',
    detail: "Visitors can't reach them until you start them again.",
  },
};
