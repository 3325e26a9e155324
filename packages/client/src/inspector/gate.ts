// Who may talk to the inspector. It shows what visitors sent, and can send it again: neither is for another site's page,
// nor for a name of somebody else's that was made to point at 127.0.0.1.
import { timingSafeEqual } from 'node:crypto';

export interface GateRequest {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** As browsers send it: who made this request. */
  readonly fetchSite: string | undefined;
  /** Of the page that asks. */
  readonly token: string | undefined;
}

export interface Refusal {
  readonly status: 403 | 405 | 421;
  readonly reason: string;
}

const READING = new Set(['GET', 'HEAD']);

/** null: it may go on. */
export const refusalOf = (
  request: GateRequest,
  own: { readonly port: number; readonly token: string },
): Refusal | null => {
  const hosts = [`127.0.0.1:${own.port}`, `localhost:${own.port}`];
  const host = request.host?.toLowerCase();
  if (host === undefined || !hosts.includes(host)) {
    return { status: 421, reason: 'the inspector answers to 127.0.0.1 and localhost only' };
  }
  // Top-level visits and older browsers send `none` or nothing.
  if (request.fetchSite !== undefined && !['same-origin', 'none'].includes(request.fetchSite)) {
    return { status: 403, reason: 'another site asked for it' };
  }
  if (READING.has(request.method)) return null;
  if (request.method !== 'POST') return { status: 405, reason: 'only GET and POST' };
  if (request.origin?.toLowerCase() !== `http://${host}`)
    return { status: 403, reason: 'not asked by the inspector page' };
  if (!isSame(request.token ?? '', own.token))
    return { status: 403, reason: 'not the token of this page; load it again' };
  return null;
};

const isSame = (given: string, own: string): boolean => {
  const a = Buffer.from(given);
  const b = Buffer.from(own);
  return a.length === b.length && timingSafeEqual(a, b);
};
