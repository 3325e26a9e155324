// Text into HTML, safely: everything is escaped but what these functions themselves write.

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);

/** Text of descriptions: `code` between backticks, an empty line between paragraphs. */
export const prose = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');

export const paragraphs = (text: string): string =>
  text
    .split(/\n\n+/)
    .map((paragraph) => `<p>${prose(paragraph).replaceAll('\n', '<br>')}</p>`)
    .join('\n');

export const codeBlock = (text: string): string => `<pre><code>${escaped(text)}</code></pre>`;

export const jsonBlock = (value: unknown): string => codeBlock(JSON.stringify(value, null, 2));

/** Ids of anchors: letters, digits and hyphens. */
export const anchor = (...words: string[]): string =>
  words
    .join('-')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
