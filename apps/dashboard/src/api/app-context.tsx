// React context for all pages: the API client, the session, and whether the platform is reachable.
import type { PlatformClient } from '@tunnel/contract';
import { createContext, useContext, useSyncExternalStore } from 'react';
import type { Reachability } from './reachability.ts';
import type { Session, SessionState } from './session.ts';

export interface AppParts {
  readonly api: PlatformClient;
  readonly session: Session;
  readonly reachability: Reachability;
}

const AppContext = createContext<AppParts | null>(null);

export const AppProvider = AppContext.Provider;

export const useApp = (): AppParts => {
  const parts = useContext(AppContext);
  if (parts === null) throw new Error('outside of the app');
  return parts;
};

export const useApi = (): PlatformClient => useApp().api;

export const useSessionState = (): SessionState => {
  const { session } = useApp();
  return useSyncExternalStore(session.subscribe, () => session.state);
};

export const useIsAway = (): boolean => {
  const { reachability } = useApp();
  return useSyncExternalStore(reachability.subscribe, reachability.isAway);
};
