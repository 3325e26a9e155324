// Mails as .eml files in <data_dir>/mail/: what a start without a mail server uses. Each is written aside and renamed, so that
// whoever watches the folder never reads half a mail.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { createTransport } from 'nodemailer';
import { composeMessage } from './compose-message.ts';
import type { MailNotice, MailTransport, WaitingMail } from './mail-transport.ts';

export interface FileTransportOptions {
  readonly dataDir: string;
  readonly from: string;
  readonly onMail?: (notice: MailNotice) => void;
}

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
    const [file, aside] = [join(folder, name), join(folder, `.${name}.part`)];
    await writeFile(aside, message, { mode: 0o600 });
    await rename(aside, file);
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
