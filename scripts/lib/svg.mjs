// The frame of our SVG pictures: title, subtitle and styles with light and dark colors.

export const escapeXml = (text) =>
  String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const styleOf = ({ light, dark }) => `
text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:600}.quiet{fill:#59636e}
${light}
@media (prefers-color-scheme: dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}${dark}}`;

/** Height of title and subtitle. The content begins below it. */
export const SVG_HEAD = 58;

/**
 * @param {{ width: number, height: number, title: string, subtitle: string, description: string, style: { light: string, dark: string }, content: string[] }} what
 * @returns {string} SVG
 */
export const drawSvg = ({ width, height, title, subtitle, description, style, content }) =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<desc>${escapeXml(description)}</desc>`,
    `<style>${styleOf(style)}</style>`,
    `<text class="title" x="0" y="18">${escapeXml(title)}</text>`,
    `<text class="quiet" x="0" y="38">${escapeXml(subtitle)}</text>`,
    ...content,
    '</svg>',
    '',
  ].join('\n');
