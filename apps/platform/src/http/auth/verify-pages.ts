// What a browser shows after the link of a verification mail. The ways on are relative: the platform may live below a path.
import { makePage } from './page.ts';

export const VERIFIED_PAGE = makePage(
  'Your e-mail address is verified',
  '<p>You can log in now.</p>\n<p><a href="../../app/login">Log in</a></p>',
);

export const NOT_VERIFIED_PAGE = makePage(
  'This link is not valid',
  `<p>It was used before, or it has run out.</p>
<p>If your address is already verified, <a href="../../app/login">log in</a>; else <a href="../../app/check-mail">ask for a new mail</a>.</p>`,
);
