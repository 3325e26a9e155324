// What the page reads in an access token: how long it lasts. Whether it is good is the platform's to say.

/** Of a token that cannot be read. */
const USUAL_MS = 15 * 60_000;

/** Its whole life, which does not depend on what this machine takes for the time. */
export const lifetimeMs = (token: string): number => {
  try {
    const text = atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'));
    const { iat, exp } = JSON.parse(text) as { iat?: unknown; exp?: unknown };
    const ms = (Number(exp) - Number(iat)) * 1000;
    return ms > 0 ? ms : USUAL_MS;
  } catch {
    return USUAL_MS;
  }
};
