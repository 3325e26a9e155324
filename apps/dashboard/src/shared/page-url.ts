// What the addresses of pages carry: queries as plain text, where a login leads back to, and which addresses may be left for.

export type Search = Readonly<Record<string, string>>;

/** A token of digits stays the text that it is. */
export const parseSearch = (text: string): Search => Object.fromEntries(new URLSearchParams(text));

export const stringifySearch = (search: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === 'string' || typeof value === 'number') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
};

/** The fields of a page's address that it knows; all else is left out. */
export const textFields =
  <const Name extends string>(...names: readonly Name[]) =>
  (search: Readonly<Record<string, unknown>>): { readonly [Field in Name]?: string } => {
    const known = names.flatMap((name) => (typeof search[name] === 'string' ? [[name, search[name]] as const] : []));
    return Object.fromEntries(known) as { readonly [Field in Name]?: string };
  };

const HOME = '/app/';
/** Coming back to one of these after a login would be a circle. */
const NO_RETURN = ['login', 'signup', 'check-mail', 'verify', 'forgot', 'reset-password'];

/** Where a login leads back to. Only pages of our own: whoever makes the link must not choose where a person lands. */
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

/** The value of `next` for a page that was left; undefined for the first page, which needs none. */
export const returnTo = (left: string): string | undefined => {
  const path = nextPath(left);
  return path === HOME ? undefined : path;
};

/** An address from elsewhere that leads to a page, and does nothing else: a script would run as ours. null: it is none. */
export const webAddress = (value: unknown): string | null => {
  if (typeof value !== 'string' || !URL.canParse(value)) return null;
  const { protocol, href } = new URL(value);
  return protocol === 'https:' || protocol === 'http:' ? href : null;
};
