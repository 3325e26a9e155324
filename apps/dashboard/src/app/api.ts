// The platform API for the pages: a call whose access token has run out is repeated once with a new one.
import { PlatformClient, type PlatformFetch } from '@tunnel/contract';
import type { Session } from './session.ts';

/** Without a session: for refresh and logout, and for those who are not signed in. */
export const createOpenClient = (origin: string, fetch: PlatformFetch): PlatformClient =>
  new PlatformClient({ url: origin, fetch });

export const createApi = (origin: string, fetch: PlatformFetch, session: Session): PlatformClient =>
  new PlatformClient({
    url: origin,
    fetch: renewingFetch(fetch, session),
    accessToken: () => session.accessToken,
  });

/** Rejects with the fault of the renewal when the session has ended. */
export const renewingFetch =
  (fetch: PlatformFetch, session: Pick<Session, 'accessToken' | 'renew'>): PlatformFetch =>
  async (url, request) => {
    const sent = request.headers['authorization'];
    const answer = await fetch(url, request);
    if (sent === undefined || answer.status !== 401) return answer;
    const now = session.accessToken;
    // Another call may have renewed it meanwhile.
    const token = now !== '' && sent !== `Bearer ${now}` ? now : await session.renew();
    return fetch(url, { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
  };
