// Template of the platform's mails, and the function that puts a mail into the outbox.
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

export interface Mail {
  /** Recipient's address, normalized. A mail has only one recipient. */
  readonly recipient: string;
  readonly subject: string;
  /** Plain text in ASCII, so that no transfer encoding is needed and links stay on a single line. */
  readonly text: string;
  readonly html: string;
}

/**
 * Puts a mail into the outbox, in the transaction of the change that the mail is about. So mail and change are committed together, and no
 * request waits for a mail server. `userId` is the account that the mail is about, or null if no account exists yet.
 */
export const queueMail = async (
  trx: Transaction<Schema>,
  mail: Mail,
  { userId, now }: { readonly userId: string | null; readonly now: number },
): Promise<void> => {
  await trx
    .insertInto('mail_outbox')
    .values({
      recipient: mail.recipient,
      subject: mail.subject,
      text_body: mail.text,
      html_body: mail.html,
      created_at: new Date(now),
      next_try_at: new Date(now),
      user_id: userId,
    })
    .execute();
};

export interface MailContent {
  readonly recipient: string;
  readonly subject: string;
  /** Paragraph of the mail before the link. */
  readonly opening: string;
  /** Label of the mail's button, which opens the link. */
  readonly action: string;
  readonly link: string;
  /** Paragraphs of the mail after the link. */
  readonly closing: readonly string[];
}

/**
 * Renders a mail with a few sentences and a link, as text and as HTML with the same content. Apart from the recipient's address, a mail
 * contains no text typed by the person who caused it, because anyone can enter another person's address.
 */
export const renderMail = ({ recipient, subject, opening, action, link, closing }: MailContent): Mail => ({
  recipient,
  subject,
  text: `${['Hello,', wrap(opening), link, ...closing.map(wrap)].join('\n\n')}\n`,
  html: page(subject, [
    block('Hello,'),
    block(escapeHtml(opening)),
    `<p style="margin:24px 0"><a href="${escapeHtml(link)}" style="${BUTTON}">${escapeHtml(action)}</a></p>`,
    `<p style="${SMALL}">Or open this link:<br><a href="${escapeHtml(link)}" style="color:#1d4ed8;word-break:break-all">${escapeHtml(link)}</a></p>`,
    ...closing.map((text) => block(escapeHtml(text))),
  ]),
});

const LINE_CHARACTERS = 72;

const wrap = (paragraph: string): string => {
  const lines = [''];
  for (const word of paragraph.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= LINE_CHARACTERS) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
};

const BUTTON =
  'display:inline-block;padding:12px 20px;border-radius:6px;background:#1d4ed8;color:#ffffff;text-decoration:none;font-weight:600';
const SMALL = 'margin:0 0 16px;font-size:14px;color:#475569';

const block = (html: string): string => `<p style="margin:0 0 16px">${html}</p>`;

const page = (title: string, parts: readonly string[]): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title></head>
<body style="margin:0;padding:24px;background:#f1f5f9">
<div style="max-width:520px;margin:0 auto;padding:32px;border-radius:8px;background:#ffffff;color:#0f172a;font:16px/1.5 system-ui,sans-serif">
${parts.join('\n')}
</div>
</body>
</html>
`;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');

/** URL of a page of the platform, as seen from outside. `publicUrl` may contain a path, with or without a trailing slash. */
export const linkTo = (publicUrl: string, path: string): string => publicUrl.replace(/\/+$/, '') + path;

/** Path of the page on which users see and change their billing. */
export const BILLING_PAGE = '/app/billing';
