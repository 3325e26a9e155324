// The few pages that need no dashboard, and who wants a page at all.
import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { PlatformEnv } from './platform-env.ts';

const STYLE = `body{margin:0;padding:10vh 1rem;background:#f1f5f9;color:#0f172a;font:1rem/1.5 system-ui,sans-serif}
main{max-width:26rem;margin:0 auto;padding:2rem;border-radius:.5rem;background:#fff}
h1{margin:0 0 1rem;font-size:1.25rem}
a{color:#1d4ed8}
@media (prefers-color-scheme:dark){body{background:#0f172a;color:#e2e8f0}main{background:#1e293b}a{color:#93c5fd}}`;

export interface Page {
  readonly html: string;
  /** Of the Content-Security-Policy header. */
  readonly policy: string;
}

/**
 * The few pages that need no dashboard: small, without anything from elsewhere, and with a policy that lets nothing else in.
 * Their texts are ours alone: nothing of a request is ever put into one. `body` as it stands: no text of anybody else's may
 * be in it.
 */
const makePage = (title: string, body: string): Page => ({
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`,
  policy: [
    "default-src 'none'",
    `style-src ${hashOf(STYLE)}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
});

/** Only this very text is applied: a policy by content needs no secret of each answer. */
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;

/** What a browser shows after the link of a verification mail. The ways on are relative: the platform may live below a path. */
export const VERIFIED_PAGE = makePage(
  'Your e-mail address is verified',
  '<p>You can log in now.</p>\n<p><a href="../../app/login">Log in</a></p>',
);

export const NOT_VERIFIED_PAGE = makePage(
  'This link is not valid',
  `<p>It was used before, or it has run out.</p>
<p>If your address is already verified, <a href="../../app/login">log in</a>; else <a href="../../app/check-mail">ask for a new mail</a>.</p>`,
);

/** Whether a request comes from the address line of a browser. Programs ask for JSON, or for anything. */
export const wantsPage = (context: Context<PlatformEnv>): boolean =>
  accepts(context, {
    header: 'Accept',
    supports: ['application/json', 'text/html'],
    default: 'application/json',
  }) === 'text/html';
