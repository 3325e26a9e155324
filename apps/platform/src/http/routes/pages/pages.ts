// HTML pages outside the dashboard, and the check of whether a request wants a page.
import { createHash } from 'node:crypto';
import type { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { PlatformEnv } from '../../shared/platform-env.ts';

/** Styles in the look of the dashboard's sign-in pages: its colors, its logo, a single card. */
const STYLE = `:root{color-scheme:light dark}
body{box-sizing:border-box;margin:0 auto;max-width:25rem;padding:max(2rem,10vh) 1rem 3rem;background:light-dark(#fafafb,#0b0d11);color:light-dark(#15181e,#eceef2);font:.875rem/1.375rem ui-sans-serif,system-ui,sans-serif;-webkit-font-smoothing:antialiased}
header{display:flex;gap:.5rem;justify-content:center;align-items:center;margin-bottom:2rem;font-size:1rem;font-weight:600}
svg{width:1.5rem;height:1.5rem}
rect{fill:light-dark(#3552cf,#93a8ff)}
path{fill:none;stroke:light-dark(#fff,#0b1024);stroke-width:2;stroke-linecap:round}
main{padding:2rem;border:1px solid light-dark(#e3e5ea,#262b34);border-radius:.75rem;background:light-dark(#fff,#12151a)}
h1{margin:0;font-size:1.25rem;line-height:1.75rem;font-weight:600}
p{margin:.375rem 0 0;overflow-wrap:anywhere;color:light-dark(#59616d,#9ba4b2)}
a{color:light-dark(#3552cf,#93a8ff)}
h2{margin:1.5rem 0 0;font-size:.875rem;line-height:1.375rem;font-weight:600}
pre{margin:.375rem 0 0;padding:.5rem .75rem;border-radius:.375rem;background:light-dark(#f1f2f5,#1b2028);font:.8125rem/1.25rem ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.go{display:block;margin-top:1.5rem;padding:.5625rem;border-radius:.375rem;background:light-dark(#3552cf,#93a8ff);color:light-dark(#fff,#0b1024);font-weight:500;text-align:center;text-decoration:none}
:focus-visible{outline:2px solid light-dark(#3552cf,#93a8ff);outline-offset:2px}`;

const BRAND = `<header><svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"/><path d="M6 17v-4a6 6 0 0 1 12 0v4M10 17v-4a2 2 0 0 1 4 0v4"/></svg>Hatchway</header>`;

export interface Page {
  readonly html: string;
  /** Value of the Content-Security-Policy header. */
  readonly policy: string;
}

/**
 * Builds a small page without external content, with a policy that forbids all other content. `body` is inserted as is, so texts from
 * outside must be escaped, or encoded in a link.
 */
export const makePage = (title: string, body: string): Page => ({
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} · Hatchway</title>
<style>${STYLE}</style>
</head>
<body>
${BRAND}
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`,
  policy: [
    "default-src 'none'",
    `style-src ${STYLE_HASH}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
});

/** Returns the hash source of a text for the policy. The browser applies only exactly this text, and no nonce per response is needed. */
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;

const STYLE_HASH = hashOf(STYLE);

/**
 * The page shown after the link in a verification mail: a link to the sign-in page, with the address filled in. Links are relative,
 * because the platform may be served below a path.
 */
export const verifiedPage = ({ email, isChange }: { readonly email: string; readonly isChange: boolean }): Page =>
  makePage(
    isChange ? 'Email changed' : 'Email verified',
    `<p>${isChange ? 'Sign in with your new email address from now on.' : 'Sign in to get started.'}</p>
<a class="go" href="../../app/login?email=${encodeURIComponent(email)}">Sign in</a>`,
  );

export const NOT_VERIFIED_PAGE = makePage(
  'This link is not valid',
  `<p>This link has expired or was already used.</p>
<a class="go" href="../../app/login">Sign in</a>
<p>Not verified yet? <a href="../../app/check-mail">Resend email</a></p>`,
);

export const ADDRESS_TAKEN_PAGE = makePage(
  'This email address is already in use',
  `<p>Another account uses this email address. Your account keeps the current address.</p>
<a class="go" href="../../app/settings">Open settings</a>`,
);

/**
 * The page shown if a program that sent the browser here cannot be trusted, or cannot be checked right now. The page does not link to the
 * program. `reason` may quote text from the program.
 */
export const notConnectedPage = ({ code, values, message, next: nextOfPrograms }: Fault): Page => {
  const { title, text, next } =
    code === 'OAUTH_CLIENT_REFUSED'
      ? { title: "This app can't connect", text: String(values['reason']), next: nextOfPrograms }
      : // The retry time is part of the text, because users do not see the Retry-After header.
        { title: 'Try again in a moment', text: message, next: `Reload this page in ${values['seconds']} s.` };
  return makePage(
    title,
    `<p>${escapeHtml(text.charAt(0).toUpperCase() + text.slice(1))}.</p>
<p>${escapeHtml(next)}</p>
<p>${code}</p>`,
  );
};

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => ESCAPED[character] ?? '');

/** Returns true for a request from a browser's address bar. Programs ask for JSON, or accept any type. */
export const wantsPage = (context: Context<PlatformEnv>): boolean =>
  accepts(context, {
    header: 'Accept',
    supports: ['application/json', 'text/html'],
    default: 'application/json',
  }) === 'text/html';
