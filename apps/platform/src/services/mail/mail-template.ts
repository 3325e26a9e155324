// The form of our mails, and their way into the outbox.
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

export interface Mail {
  /** One address, normalized. */
  readonly recipient: string;
  readonly subject: string;
  /** ASCII, so that it travels as it is: links stay whole on their lines. */
  readonly text: string;
  readonly html: string;
}

/**
 * Puts a mail into the outbox, in the transaction of what it is about: neither is there alone, and no request waits for a
 * mail server. `userId`: whose account it is about; null: nobody has one yet.
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
  /** Before the link. */
  readonly opening: string;
  /** What the link does, as a button says it. */
  readonly action: string;
  readonly link: string;
  /** After the link, each a paragraph. */
  readonly closing: readonly string[];
}

/**
 * The form of our mails: a few sentences and a link, as text and as HTML that says the same. Nothing in them was typed by the
 * person who caused the mail, but the address that it goes to: anybody can enter anybody's address.
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

/**
 * Addresses of our own pages, as people outside see them. `publicUrl` may have a path of its own, with or without a slash at
 * its end.
 */
export const linkTo = (publicUrl: string, path: string): string => publicUrl.replace(/\/+$/, '') + path;

/** Where an account sees and changes what it pays. */
export const BILLING_PAGE = '/app/billing';
