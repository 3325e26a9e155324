// Where a login leads back to. Only pages of our own: whoever makes the link must not choose where a person lands.

const HOME = '/app/';
/** Coming back to one of these after a login would be a circle. */
const NO_RETURN = ['login', 'signup', 'check-mail', 'verify', 'forgot', 'reset-password'];

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
