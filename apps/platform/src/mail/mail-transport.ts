// How a mail leaves the house: into a file, or to a mail server.
import type { Secret, ServerConfig } from '@tunnel/runtime';
import { FileTransport } from './file-transport.ts';
import { SmtpTransport } from './smtp-transport.ts';

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
