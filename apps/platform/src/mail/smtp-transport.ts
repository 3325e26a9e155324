// Mails to a mail server. Each try is a connection of its own and has an end, whatever the server does.
import type { Secret } from '@tunnel/runtime';
import { createTransport } from 'nodemailer';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { composeMessage } from './compose-message.ts';
import type { MailTransport, WaitingMail } from './mail-transport.ts';

export interface SmtpTransportOptions {
  /** smtp:// or smtps://, with user and password in it. */
  readonly url: Secret;
  readonly from: string;
}

export class SmtpTransport implements MailTransport {
  readonly #from: string;
  readonly #server;

  constructor({ url, from }: SmtpTransportOptions) {
    this.#from = from;
    this.#server = createTransport({
      url: url.reveal(),
      connectionTimeout: PLATFORM_BOUNDS.MAIL_CONNECT_TIMEOUT_MS,
      greetingTimeout: PLATFORM_BOUNDS.MAIL_CONNECT_TIMEOUT_MS,
      dnsTimeout: PLATFORM_BOUNDS.MAIL_CONNECT_TIMEOUT_MS,
      socketTimeout: PLATFORM_BOUNDS.MAIL_CONNECT_TIMEOUT_MS,
    });
  }

  async send(mail: WaitingMail): Promise<void> {
    await this.#server.sendMail(composeMessage(mail, this.#from));
  }

  close(): void {
    this.#server.close();
  }
}
