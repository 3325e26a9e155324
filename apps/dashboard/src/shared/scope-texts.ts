// Titles and descriptions of the permissions that an app can request, for the consent page and the settings.
import type { OauthScope } from '@tunnel/contract';

export interface ScopeText {
  /** Short name of the permission. Begins with a verb. */
  readonly title: string;
  readonly detail: string;
}

export const SCOPE_TEXTS: Readonly<Record<OauthScope, ScopeText>> = {
  'tunnels:read': {
    title: 'See your tunnels',
    detail: 'Also groups, usage, your plan and key labels. Keys are never shown.',
  },
  'requests:read': {
    title: 'Read captured requests',
    detail: 'Requests from visitors and the responses of your apps.',
  },
  'requests:replay': {
    title: 'Replay requests',
    detail: 'Sends a captured request to your app again.',
  },
  'tunnels:close': {
    title: 'Close tunnels',
    detail: "Visitors can't reach a closed tunnel until you start it again.",
  },
};
