// A waiting mail as nodemailer takes it. The text part travels as it is whenever it can (7-bit), so that a link is whole on its
// line in the raw message too; else as quoted-printable.
import type { SendMailOptions } from 'nodemailer';
import type { WaitingMail } from './mail-transport.ts';

/** Of a line, without its end (RFC 5322). */
const LINE_MAX_CHARACTERS = 998;

export const composeMessage = (mail: WaitingMail, from: string): SendMailOptions => ({
  from,
  // Not as text: nothing in an address is read as a list or a name.
  to: { name: '', address: mail.recipient },
  subject: mail.subject,
  date: mail.writtenAt,
  // The same at each try: a mail that was sent twice is shown once.
  messageId: `<${mail.id}@${hostOf(from)}>`,
  headers: { 'Auto-Submitted': 'auto-generated' },
  textEncoding: 'quoted-printable',
  alternatives: [
    textPart(mail.text),
    { contentType: 'text/html; charset=utf-8', content: mail.html, contentTransferEncoding: 'quoted-printable' },
  ],
  disableFileAccess: true,
  disableUrlAccess: true,
});

const textPart = (text: string) => {
  const lines = text.split(/\r?\n/);
  const isPlain = lines.every((line) => line.length <= LINE_MAX_CHARACTERS && /^[\t -~]*$/.test(line));
  if (!isPlain) {
    return { contentType: 'text/plain; charset=utf-8', content: text, contentTransferEncoding: 'quoted-printable' };
  }
  // nodemailer itself would not leave lines over 76 characters alone.
  const head = ['Content-Type: text/plain; charset=us-ascii', 'Content-Transfer-Encoding: 7bit', ''];
  return { contentType: 'text/plain', raw: [...head, ...lines].join('\r\n') };
};

const hostOf = (from: string): string => /@([A-Za-z0-9.-]+)/.exec(from)?.[1] ?? 'localhost';
