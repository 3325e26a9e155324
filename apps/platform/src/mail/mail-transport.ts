// How a mail leaves the platform: into a file, or to a mail server.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ServerConfig } from '@tunnel/config/server';
import { Secret, writeAtomic } from '@tunnel/runtime';
import { createTransport, type SendMailOptions } from 'nodemailer';

/** For the connection to the mail server. */
const MAIL_CONNECT_TIMEOUT_MS = 10_000;

export interface WaitingMail {
  readonly id: string;
  readonly recipient: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  readonly writtenAt: Date;
}

export interface MailTransport {
  /** Settles when the mail is out of our hands. */
  send(mail: WaitingMail): Promise<void>;
  close(): void;
}

/** What the console is told of a mail that went into a file. */
export interface MailNotice {
  readonly recipient: string;
  readonly subject: string;
  /** As good as a password: for the eyes at the console, never for a log. */
  readonly link: Secret | null;
  readonly file: string;
}

export interface MailTransportOptions {
  readonly settings: ServerConfig['platform']['mail'];
  readonly dataDir: string;
  readonly onMail?: (notice: MailNotice) => void;
}

export const createMailTransport = ({ settings, dataDir, onMail }: MailTransportOptions): MailTransport =>
  settings.transport === 'smtp'
    ? new SmtpTransport({ url: settings.smtp_url, from: settings.from })
    : new FileTransport({ dataDir, from: settings.from, ...(onMail === undefined ? {} : { onMail }) });

export interface FileTransportOptions {
  readonly dataDir: string;
  readonly from: string;
  readonly onMail?: (notice: MailNotice) => void;
}

/**
 * Mails as .eml files in <data_dir>/mail/: what a start without a mail server uses. Each is written aside and renamed, so
 * that whoever watches the folder never reads half a mail.
 */
export class FileTransport implements MailTransport {
  readonly #options: FileTransportOptions;
  readonly #composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' });

  constructor(options: FileTransportOptions) {
    this.#options = options;
  }

  async send(mail: WaitingMail): Promise<void> {
    const { dataDir, from, onMail } = this.#options;
    const { message } = await this.#composer.sendMail(composeMessage(mail, from));
    if (!Buffer.isBuffer(message)) throw new Error('the mail was not composed');
    const folder = join(dataDir, 'mail');
    // Links in mails are as good as passwords.
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const name = `${mail.writtenAt.toISOString().replaceAll(/[-:]/g, '')}-${mail.id}.eml`;
    const file = join(folder, name);
    await writeAtomic(file, message);
    const link = /^https?:\/\/\S+$/m.exec(mail.text)?.[0];
    onMail?.({
      recipient: mail.recipient,
      subject: mail.subject,
      link: link === undefined ? null : new Secret(link),
      file,
    });
  }

  close(): void {
    this.#composer.close();
  }
}

export interface SmtpTransportOptions {
  /** smtp:// or smtps://, with user and password in it. */
  readonly url: Secret;
  readonly from: string;
}

/** Mails to a mail server. Each try is a connection of its own and has an end, whatever the server does. */
export class SmtpTransport implements MailTransport {
  readonly #from: string;
  readonly #server;

  constructor({ url, from }: SmtpTransportOptions) {
    this.#from = from;
    this.#server = createTransport({
      url: url.reveal(),
      connectionTimeout: MAIL_CONNECT_TIMEOUT_MS,
      greetingTimeout: MAIL_CONNECT_TIMEOUT_MS,
      dnsTimeout: MAIL_CONNECT_TIMEOUT_MS,
      socketTimeout: MAIL_CONNECT_TIMEOUT_MS,
    });
  }

  async send(mail: WaitingMail): Promise<void> {
    await this.#server.sendMail(composeMessage(mail, this.#from));
  }

  close(): void {
    this.#server.close();
  }
}

/** Of a line, without its end (RFC 5322). */
const LINE_MAX_CHARACTERS = 998;

/**
 * A waiting mail as nodemailer takes it. The text part travels as it is whenever it can (7-bit), so that a link is whole on
 * its line in the raw message too; else as quoted-printable.
 */
const composeMessage = (mail: WaitingMail, from: string): SendMailOptions => ({
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
