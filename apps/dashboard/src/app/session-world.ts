// The browser as a session sees it: locks and news between tabs, timers, and the two calls that the cookie goes with.
import type { PlatformClient } from '@tunnel/contract';
import type { SessionNews, SessionWorld } from './session.ts';

const CHANNEL = 'tunnel-session';

export interface TabNews {
  tell(news: SessionNews): void;
  onNews(hear: (news: SessionNews) => void): void;
}

export const openTabNews = (): TabNews => {
  const channel = new BroadcastChannel(CHANNEL);
  return {
    tell: (news) => channel.postMessage(news),
    onNews: (hear) => {
      channel.onmessage = ({ data }: MessageEvent<unknown>) => {
        if (data === 'signed-in' || data === 'signed-out') hear(data);
      };
    },
  };
};

export const createSessionWorld = (client: PlatformClient, news: TabNews): SessionWorld => ({
  refresh: async () => (await client.refresh()).body.access_token,
  logOut: () => client.logOut(),
  alone: takeTurns,
  after: (ms, act) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
  tell: (message) => news.tell(message),
});

/** Pages over plain http have no locks; the platform then forgives two renewals at once. */
const takeTurns = async <T>(work: () => Promise<T>): Promise<T> => {
  if (!('locks' in navigator)) return work();
  return (await navigator.locks.request(CHANNEL, work)) as T;
};
