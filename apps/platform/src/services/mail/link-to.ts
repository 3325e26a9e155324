// Addresses of our own pages, as people outside see them.

/** `publicUrl` may have a path of its own, with or without a slash at its end. */
export const linkTo = (publicUrl: string, path: string): string => publicUrl.replace(/\/+$/, '') + path;

/** Where an account sees and changes what it pays. */
export const BILLING_PAGE = '/app/billing';
