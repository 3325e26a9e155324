import { readdir, readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createLogger, type Logger, Secret } from '@tunnel/runtime';
import { eventually, FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { sql } from 'kysely';
import PostalMime from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../db/test-database.fixture.ts';
import { queueMail } from '../services/mail/mail-template.ts';
import { MAIL_SENDS_MAX, MailSender } from './mail-sender.ts';
import { FileTransport, type MailTransport, SmtpTransport, type WaitingMail } from './mail-transport.ts';
import { MAIL_CLAIM_MS } from './outbox.ts';

const HOUR = 3_600_000;

class ScriptedTransport implements MailTransport {
  readonly tried: string[] = [];
  fails = false;

  async send({ recipient }: WaitingMail): Promise<void> {
    this.tried.push(recipient);
    if (this.fails) throw new Error(`550 no such user <${recipient}>`);
  }
  close(): void {}
}

let database: TestDatabase;
let clock: FakeClock;
const closings: (() => Promise<void>)[] = [];
const silent = createLogger({ level: 'silent', format: 'json' });

beforeEach(async () => {
  database = await createTestDatabase();
  clock = new FakeClock();
});
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
  await database.close();
});

const startSender = (transport: MailTransport, logger: Logger = silent): MailSender => {
  const sender = new MailSender({ db: database.db, clock, logger, transport, random: () => 0.5 });
  closings.push(async () => {
    const stopped = sender.stop();
    // Time for a hanging mail to reach its timeout.
    await clock.advance(2000);
    await stopped;
  });
  sender.start();
  return sender;
};

const queue = (...recipients: string[]): Promise<void> =>
  database.db.transaction().execute(async (trx) => {
    for (const recipient of recipients) {
      const mail = { recipient, subject: 'Hello', text: 'https://link.example/secret\n', html: '<p>Hello</p>' };
      await queueMail(trx, mail, { userId: null, now: clock.now() });
    }
  });

const rows = () => database.db.selectFrom('mail_outbox').selectAll().orderBy('recipient').execute();

/** Waits until the outbox passes the check. Polling rounds run on the real database while the fake clock stands still. */
const settled = (check: (all: Awaited<ReturnType<typeof rows>>) => void) => eventually(async () => check(await rows()));

it('the mail sender sends waiting mails at startup and when woken, and then deletes their bodies', async () => {
  const transport = new ScriptedTransport();
  await queue('a@example.com');
  const sender = startSender(transport);
  await settled(([row]) => expect(row?.sent_at).not.toBeNull());
  await queue('b@example.com', 'c@example.com');
  sender.wake();
  await settled((all) => expect(all.every(({ sent_at }) => sent_at !== null)).toBe(true));
  expect(transport.tried.toSorted()).toEqual(['a@example.com', 'b@example.com', 'c@example.com']);
  expect((await rows()).map(({ text_body, html_body }) => text_body + html_body)).toEqual(['', '', '']);
});

it('the mail sender finds mails of other processes within a second', async () => {
  const transport = new ScriptedTransport();
  startSender(transport);
  await eventually(() => expect(clock.pendingTimers).toBeGreaterThan(0));
  await queue('a@example.com');
  await eventually(async () => {
    await clock.advance(1000);
    expect(transport.tried).toEqual(['a@example.com']);
  });
});

it('each of 50 mails is sent once even if three processes send', async () => {
  const transport = new ScriptedTransport();
  await queue(...Array.from({ length: 50 }, (_none, index) => `user${index}@example.com`));
  const senders = [1, 2, 3].map(() => startSender(transport));
  await settled((all) => expect(all.every(({ sent_at }) => sent_at !== null)).toBe(true));
  expect(senders).toHaveLength(3);
  expect(new Set(transport.tried).size).toBe(50);
  expect(transport.tried).toHaveLength(50);
});

it('failed mails are retried at growing intervals until the mail server accepts them', async () => {
  const transport = new ScriptedTransport();
  transport.fails = true;
  await queue('a@example.com');
  startSender(transport);
  const triedAgainIn = async (attempts: number, waitMs: number): Promise<void> => {
    // Waits for the attempt to finish first, because a claim can last as long as the wait before a retry.
    await eventually(() => expect(transport.tried).toHaveLength(attempts));
    await settled(([row]) =>
      expect([row?.attempts, row?.next_try_at.getTime()]).toEqual([attempts, clock.now() + waitMs]),
    );
  };
  await triedAgainIn(1, 5000);
  await clock.advance(5000);
  await triedAgainIn(2, 10_000);
  transport.fails = false;
  await clock.advance(10_000);
  await settled(([row]) => expect(row?.sent_at).not.toBeNull());
  expect(transport.tried).toHaveLength(3);
});

it('a mail is given up after 24 hours, with a log line that contains no address', async () => {
  const lines: string[] = [];
  const note = (fields: object, message: string): void => void lines.push(JSON.stringify({ ...fields, message }));
  const logger: Logger = { ...silent, warn: note, error: note, info: note, debug: note };
  const transport = new ScriptedTransport();
  transport.fails = true;
  await queue('ann@example.com');
  startSender(transport, logger);
  await settled(([row]) => expect(row?.attempts).toBe(1));
  await eventually(() => expect(lines).toHaveLength(1));
  await clock.advance(24 * HOUR);
  // An attempt within that day may have scheduled the next attempt after its end.
  await eventually(async () => {
    await clock.advance(HOUR);
    expect((await rows())[0]?.given_up_at).not.toBeNull();
  });
  await eventually(() => expect(lines.at(-1)).toContain('gave up sending'));
  expect(lines.join('\n')).not.toContain('@example.com');
  expect(lines[0]).toContain('550 no such user <[address]>');
  expect((await rows())[0]).toMatchObject({ text_body: '', sent_at: null });
});

it('a mail claimed by a dead process is sent by another process after 10 seconds', async () => {
  const dead: MailTransport = { send: () => new Promise(() => {}), close: () => {} };
  await queue('a@example.com');
  startSender(dead);
  await settled(([row]) => expect(row?.attempts).toBe(1));
  const transport = new ScriptedTransport();
  // A second process with a separate clock, because advancing the shared clock would end the hanging attempt.
  const later = new FakeClock(clock.now() + 9999);
  const other = new MailSender({ db: database.db, clock: later, logger: silent, transport });
  closings.push(() => other.stop());
  other.start();
  await later.advance(0);
  expect(transport.tried).toEqual([]);
  await eventually(async () => {
    await later.advance(1000);
    expect(transport.tried).toEqual(['a@example.com']);
  });
});

it('a mail held up by its server delays no other mail and stays claimed as long as needed', async () => {
  const transport = new ScriptedTransport();
  let finish = (): void => {};
  const slow: MailTransport = {
    send: (mail) =>
      mail.recipient === 'slow@example.com' ? new Promise((resolve) => (finish = resolve)) : transport.send(mail),
    close: () => {},
  };
  await queue('slow@example.com');
  const sender = startSender(slow);
  await settled(([row]) => expect(row?.attempts).toBe(1));
  await queue('a@example.com');
  sender.wake();
  await settled(([a]) => expect(a?.sent_at).not.toBeNull());
  const until = clock.now() + 2 * MAIL_CLAIM_MS;
  await eventually(async () => {
    if (clock.now() < until) await clock.advance(1000);
    expect((await rows())[1]?.next_try_at.getTime()).toBeGreaterThan(until);
  });
  finish();
  await settled(([, row]) => expect([row?.attempts, row?.sent_at]).toEqual([1, expect.any(Date)]));
});

it('a sent mail is recorded once the database is available again, and is not sent twice', async () => {
  const transport = new ScriptedTransport();
  let begun = false;
  let finish = (): void => {};
  const waiting: MailTransport = {
    send: async (mail) => {
      begun = true;
      await new Promise<void>((resolve) => (finish = resolve));
      await transport.send(mail);
    },
    close: () => {},
  };
  await queue('a@example.com');
  startSender(waiting);
  await eventually(() => expect(begun).toBe(true));
  const away = 'alter table mail_outbox rename to mail_outbox_away';
  const back = 'alter table mail_outbox_away rename to mail_outbox';
  await sql.raw(away).execute(database.db);
  finish();
  await eventually(() => expect(transport.tried).toHaveLength(1));
  await clock.advance(MAIL_CLAIM_MS);
  await sql.raw(back).execute(database.db);
  await eventually(async () => {
    await clock.advance(1000);
    expect((await rows())[0]?.sent_at).not.toBeNull();
  });
  expect(transport.tried).toHaveLength(1);
});

it('stopping the mail sender releases claimed mails that were not yet started', async () => {
  const hung: MailTransport = { send: () => new Promise(() => {}), close: () => {} };
  const count = MAIL_SENDS_MAX + 5;
  await queue(...Array.from({ length: count }, (_none, index) => `user${index}@example.com`));
  const sender = startSender(hung);
  await settled((all) => expect(all.every(({ attempts }) => attempts === 1)).toBe(true));
  const stopped = sender.stop();
  await clock.advance(2000);
  await stopped;
  const due = (await rows()).filter(({ next_try_at }) => next_try_at.getTime() <= clock.now());
  expect(due).toHaveLength(5);
});

it('the file transport writes a readable message', async () => {
  const folder = await temporaryDirectory();
  closings.push(() => folder.close());
  await queue('ann@example.com');
  startSender(new FileTransport({ dataDir: folder.path, from: 'Hatchway <no-reply@localhost>' }));
  await settled(([row]) => expect(row?.sent_at).not.toBeNull());
  const [name = ''] = await readdir(join(folder.path, 'mail'));
  const message = await PostalMime.parse(await readFile(join(folder.path, 'mail', name)));
  expect(message.to).toMatchObject([{ address: 'ann@example.com' }]);
});

it('the SMTP transport authenticates with a password, and a temporary rejection is retried', async () => {
  const received: Buffer[] = [];
  let refusals = 1;
  const server = new SMTPServer({
    authOptional: false,
    allowInsecureAuth: true,
    hideSTARTTLS: true,
    onAuth: ({ username, password }, _session, done) =>
      username === 'tunnel' && password === 'p@ss' ? done(null, { user: 'tunnel' }) : done(new Error('no')),
    onData: (stream, _session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        if (refusals > 0) {
          refusals -= 1;
          done(Object.assign(new Error('try later'), { responseCode: 451 }));
          return;
        }
        received.push(Buffer.concat(chunks));
        done();
      });
    },
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closings.push(() => new Promise((resolve) => server.close(() => resolve())));
  const { port } = server.server.address() as AddressInfo;
  await queue('ann@example.com');
  const url = new Secret(`smtp://tunnel:p%40ss@127.0.0.1:${port}`);
  startSender(new SmtpTransport({ url, from: 'Tunnel <no-reply@tunnel.example>' }));
  await settled(([row]) => expect([row?.attempts, row?.next_try_at.getTime()]).toEqual([1, clock.now() + 5000]));
  await clock.advance(5000);
  await settled(([row]) => expect(row?.sent_at).not.toBeNull());
  expect(received).toHaveLength(1);
  const message = await PostalMime.parse(received[0] ?? '');
  expect(message).toMatchObject({ subject: 'Hello', from: { address: 'no-reply@tunnel.example' } });
  expect(message.text).toContain('https://link.example/secret');
  expect(message.html).toContain('<p>Hello</p>');
});
