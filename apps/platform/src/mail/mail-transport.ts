// Delivery of mails: into a file, or to a mail server.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ServerConfig } from '@tunnel/config/server';
import { Secret, writeAtomic } from '@tunnel/runtime';
import type { SendMailOptions } from 'nodemailer';

/** Timeout for connecting to the mail server. */
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
  /** Resolves when the mail server has accepted the mail, or the file has been written. */
  send(mail: WaitingMail): Promise<void>;
  close(): void;
}

/** Facts about a mail written to a file, shown on the console. */
export interface MailNotice {
  readonly recipient: string;
  readonly subject: string;
  /** The link in the mail. Grants access like a password, so it may appear on the console but never in a log. */
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
 * Writes mails as .eml files to <data_dir>/mail/, the default without a mail server. A file is written under a temporary name and then
 * renamed, so that programs watching the folder never read an incomplete mail.
 */
export class FileTransport implements MailTransport {
  readonly #options: FileTransportOptions;
  constructor(options: FileTransportOptions) {
    this.#options = options;
  }

  async send(mail: WaitingMail): Promise<void> {
    const { dataDir, from, onMail } = this.#options;
    const { createTransport } = await loadMailer();
    const composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' });
    const { message } = await composer.sendMail(composeMessage(mail, from));
    if (!Buffer.isBuffer(message)) throw new Error('the mail was not composed');
    const folder = join(dataDir, 'mail');
    // Only the server's user may read the folder, because links in mails grant access like passwords.
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

  close(): void {}
}

export interface SmtpTransportOptions {
  /** URL of the mail server, smtp:// or smtps://, including user and password. */
  readonly url: Secret;
  readonly from: string;
}

/** Sends mails to a mail server. Every attempt uses a separate connection and has time limits, whatever the server does. */
export class SmtpTransport implements MailTransport {
  readonly #options: SmtpTransportOptions;
  #server: ReturnType<typeof openServer> | null = null;

  constructor(options: SmtpTransportOptions) {
    this.#options = options;
  }

  async send(mail: WaitingMail): Promise<void> {
    const server = await this.#open();
    await server.sendMail(composeMessage(mail, this.#options.from));
  }

  /** Connects and signs in without sending a mail. Rejects with the reason if the mail server does not accept the connection. */
  async verify(): Promise<void> {
    const server = await this.#open();
    await server.verify();
  }

  close(): void {
    void this.#server?.then((server) => server.close());
  }

  #open(): ReturnType<typeof openServer> {
    this.#server ??= openServer(this.#options);
    return this.#server;
  }
}

const openServer = async ({ url }: SmtpTransportOptions) => {
  const { createTransport } = await loadMailer();
  return createTransport({
    url: url.reveal(),
    connectionTimeout: MAIL_CONNECT_TIMEOUT_MS,
    greetingTimeout: MAIL_CONNECT_TIMEOUT_MS,
    dnsTimeout: MAIL_CONNECT_TIMEOUT_MS,
    socketTimeout: MAIL_CONNECT_TIMEOUT_MS,
  });
};

/** Loads the mail library for the first mail, because a platform can run for days without a mail. */
const loadMailer = () => import('nodemailer');

/** Maximum length of a line in a mail, without the line ending (RFC 5322). */
const LINE_MAX_CHARACTERS = 998;

/**
 * Builds the nodemailer message of a waiting mail. The text part is sent unencoded (7-bit) if possible, so that a link stays on one line
 * in the raw message, too. Other texts are sent as quoted-printable.
 */
const composeMessage = (mail: WaitingMail, from: string): SendMailOptions => ({
  from,
  // The recipient is an object, so that nodemailer does not parse the address as a list or a display name.
  to: { name: '', address: mail.recipient },
  subject: mail.subject,
  date: mail.writtenAt,
  // All attempts use the same message id, so that mail programs show a mail sent twice only once.
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
  // A raw part, because nodemailer would re-encode lines over 76 characters.
  const head = ['Content-Type: text/plain; charset=us-ascii', 'Content-Transfer-Encoding: 7bit', ''];
  return { contentType: 'text/plain', raw: [...head, ...lines].join('\r\n') };
};

const hostOf = (from: string): string => /@([A-Za-z0-9.-]+)/.exec(from)?.[1] ?? 'localhost';
