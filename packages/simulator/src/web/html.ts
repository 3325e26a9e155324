// HTML of the simulator's pages: frame, sections, tables and buttons with escaped texts, and a content security policy that allows nothing
// else.
import { createHash } from 'node:crypto';

const STYLE = `:root{color-scheme:light dark;--ground:#f1f5f9;--card:#fff;--ink:#0f172a;--soft:#475569;--line:#e2e8f0;--act:#1d4ed8;--fill:#1d4ed8}
@media (prefers-color-scheme:dark){:root{--ground:#0f172a;--card:#1e293b;--ink:#e2e8f0;--soft:#94a3b8;--line:#334155;--act:#60a5fa;--fill:#2563eb}}
*{box-sizing:border-box}
body{margin:0;padding:2rem 1rem 4rem;background:var(--ground);color:var(--ink);font:.95rem/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto}
h1{margin:0;font-size:1.4rem}
h2{margin:0 0 .75rem;font-size:1rem}
p{margin:.25rem 0}
section{margin:1.25rem 0;padding:1.25rem;border-radius:.6rem;background:var(--card);overflow-x:auto}
.soft{color:var(--soft)}
table{width:100%;border-collapse:collapse}
th,td{padding:.45rem .6rem .45rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;white-space:nowrap}
th{color:var(--soft);font-weight:500}
tr:last-child td{border-bottom:0}
@media (max-width:40rem){th,td{white-space:normal;overflow-wrap:anywhere}}
code{font-size:.85em}
form{display:inline-flex;gap:.4rem;margin:0 .4rem .3rem 0}
button,select{padding:.3rem .7rem;border:1px solid var(--line);border-radius:.35rem;background:var(--card);color:inherit;font:inherit}
button{border-color:var(--fill);background:var(--fill);color:#fff;cursor:pointer}
a{color:var(--act)}
.tag{padding:.1rem .5rem;border-radius:1rem;background:var(--line);font-size:.85em}`;

const STYLE_HASH = createHash('sha256').update(STYLE, 'utf8').digest('base64');

/** `leadsTo` is the final target of the page's forms, because browsers apply the policy to redirects as well. */
export const policyFor = (leadsTo: string | null): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    `form-action 'self'${leadsTo === null ? '' : ` ${new URL(leadsTo).origin}`}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** Renders an HTML page. `body` is HTML with escaped texts. */
export const makePage = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${body}
</main>
</body>
</html>
`;

export const section = (heading: string, content: string): string =>
  `<section>\n<h2>${escaped(heading)}</h2>\n${content}\n</section>`;

/** Renders an HTML table. Cells are HTML. */
export const table = (heads: readonly string[], rows: readonly (readonly string[])[], ifNone: string): string => {
  if (rows.length === 0) return `<p class="soft">${escaped(ifNone)}</p>`;
  const head = heads.map((text) => `<th>${escaped(text)}</th>`).join('');
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n');
  return `<table>\n<tr>${head}</tr>\n${body}\n</table>`;
};

/** Renders an HTML form with a single button. After the call the browser returns to `back`. */
export const button = (
  label: string,
  action: string,
  back: string,
  fields: Readonly<Record<string, string>> = {},
): string => {
  const hidden = Object.entries({ ...fields, back }).map(
    ([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`,
  );
  return `<form method="post" action="${escaped(action)}">${hidden.join('')}<button>${escaped(label)}</button></form>`;
};

export const tag = (text: string): string => `<span class="tag">${escaped(text)}</span>`;
export const code = (text: string): string => `<code>${escaped(text)}</code>`;
export const dollars = (cents: number): string => `$${(cents / 100).toFixed(2)}`;
export const day = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10);
export const minute = (seconds: number): string =>
  `${new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);
