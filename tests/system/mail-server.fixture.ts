// The mail server of tests that follow docs/deploy.md: accepts the user of the page, and keeps the received mails.
import type { AddressInfo } from 'node:net';
import { eventually } from '@tunnel/testkit';
import PostalMime from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import type { Harness } from './harness.fixture.ts';

/** A mail server that knows the SMTP user of the page, and stores received mails. */
export class MailServer {
  readonly #server: SMTPServer;
  readonly #mails: { readonly to: string; readonly raw: Buffer }[] = [];

  constructor() {
    this.#server = new SMTPServer({
      allowInsecureAuth: true,
      hideSTARTTLS: true,
      onAuth: ({ username, password }, _session, done) =>
        username === 'user' && password === 'password' ? done(null, { user: username }) : done(new Error('no')),
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const to = session.envelope.rcptTo.map(({ address }) => address).join();
          this.#mails.push({ to, raw: Buffer.concat(chunks) });
          done();
        });
      },
    });
    this.#server.on('error', () => {});
  }

  static async start(
    harness: Pick<Harness, 'use'>,
    { host = '127.0.0.1', port = 0 }: { readonly host?: string; readonly port?: number } = {},
  ): Promise<MailServer> {
    const made = harness.use(new MailServer());
    await new Promise<void>((resolve) => made.#server.listen(port, host, resolve));
    return made;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  /** Returns the link that contains `part` from the newest mail to an address. */
  link(to: string, part: string): Promise<string> {
    return eventually(
      async () => {
        const mails = await Promise.all(
          this.#mails.filter((mail) => mail.to === to).map(({ raw }) => PostalMime.parse(raw)),
        );
        const links = mails.flatMap(({ text = '' }) => text.match(/https?:\/\/\S+/g) ?? []);
        const found = links.findLast((link) => link.includes(part));
        if (found === undefined) throw new Error(`no mail to ${to} with ${part}: ${links.join(' ')}`);
        return found;
      },
      { timeoutMs: 30_000 },
    );
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
