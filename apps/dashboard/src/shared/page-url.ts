// URLs of the dashboard's pages: query parameters as plain text, the page to open after sign-in, and the external URLs that a page may
// open.

export type Search = Readonly<Record<string, string>>;

/** Parses a query string into text values. Unlike the router's default parser, a token of digits stays text. */
export const parseSearch = (text: string): Search => Object.fromEntries(new URLSearchParams(text));

export const stringifySearch = (search: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === 'string' || typeof value === 'number') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
};

/** Returns a validator that keeps only the named query parameters, if their values are text. */
export const textFields =
  <const Name extends string>(...names: readonly Name[]) =>
  (search: Readonly<Record<string, unknown>>): { readonly [Field in Name]?: string } => {
    const known = names.flatMap((name) => (typeof search[name] === 'string' ? [[name, search[name]] as const] : []));
    return Object.fromEntries(known) as { readonly [Field in Name]?: string };
  };

const HOME = '/app/';
/** Pages that are never opened after sign-in, because the user would go around in a circle. */
const NO_RETURN = ['login', 'signup', 'check-mail', 'verify', 'forgot', 'reset-password'];

/**
 * Returns the path to open after sign-in. Only pages of the dashboard are accepted, so that the author of a link cannot redirect a user
 * elsewhere.
 */
export const nextPath = (asked: unknown): string => {
  if (typeof asked !== 'string' || !asked.startsWith(HOME)) return HOME;
  let url: URL;
  try {
    url = new URL(asked, 'http://here.invalid');
  } catch {
    return HOME;
  }
  const { origin, pathname, search, hash } = url;
  const page = pathname.slice(HOME.length).split('/')[0] ?? '';
  if (origin !== 'http://here.invalid' || !pathname.startsWith(HOME) || NO_RETURN.includes(page)) return HOME;
  return pathname + search + hash;
};

/** Returns the `next` parameter for the page that was left. Undefined for the overview, which is the default. */
export const returnTo = (left: string): string | undefined => {
  const path = nextPath(left);
  return path === HOME ? undefined : path;
};

/**
 * Returns an external URL if the scheme is http or https. Null for every other value: a `javascript:` URL would run as a script of the
 * dashboard.
 */
export const webAddress = (value: unknown): string | null => {
  if (typeof value !== 'string' || !URL.canParse(value)) return null;
  const { protocol, href } = new URL(value);
  return protocol === 'https:' || protocol === 'http:' ? href : null;
};
