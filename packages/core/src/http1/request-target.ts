// The four forms of a request target (RFC 9112, 3.2) and what each becomes on the way to the local service.

export interface Target {
  readonly kind: 'target';
  /** Origin-form, or `*`. */
  readonly path: string;
  /** Of an absolute-form target; null: Host says it. */
  readonly authority: string | null;
}

export type TargetReading = Target | { readonly kind: 'bad-target'; readonly reason: string };

/** `target` holds visible ASCII only, which the caller has checked. Methods other than CONNECT. */
export const readTarget = (method: string, target: string): TargetReading => {
  if (target.charCodeAt(0) === 0x2f) return { kind: 'target', path: target, authority: null };
  if (target === '*') {
    if (method === 'OPTIONS') return { kind: 'target', path: '*', authority: null };
    return { kind: 'bad-target', reason: 'the target * is for OPTIONS only' };
  }
  return readAbsoluteForm(method, target);
};

const readAbsoluteForm = (method: string, target: string): TargetReading => {
  const schemeEnd = target.indexOf('://');
  const scheme = schemeEnd === -1 ? '' : target.slice(0, schemeEnd).toLowerCase();
  if (scheme !== 'http' && scheme !== 'https') {
    return { kind: 'bad-target', reason: 'the request target is not a path' };
  }
  const from = schemeEnd + 3;
  let at = from;
  while (at < target.length && target[at] !== '/' && target[at] !== '?') at += 1;
  const authority = target.slice(from, at);
  const rest = target.slice(at);
  if (rest.startsWith('/')) return { kind: 'target', path: rest, authority };
  // Without a path it is the server as a whole that OPTIONS asks about (RFC 9112, 3.2.4).
  if (rest === '' && method === 'OPTIONS') return { kind: 'target', path: '*', authority };
  return { kind: 'target', path: `/${rest}`, authority };
};
