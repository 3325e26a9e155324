// What a browser shows after the link of a verification mail.
import { makePage } from './page.ts';

export const VERIFIED_PAGE = makePage(
  'Your e-mail address is verified',
  '<p>You can log in now. This page can be closed.</p>',
);

export const NOT_VERIFIED_PAGE = makePage(
  'This link is not valid',
  '<p>It was used before, or it has run out. If your address is already verified, just log in; else ask for a new mail.</p>',
);
