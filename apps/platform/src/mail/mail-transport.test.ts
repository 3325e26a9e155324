import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { verificationMail } from '../services/mail/mails.ts';
import { FileTransport, type MailNotice, type WaitingMail } from './mail-transport.ts';

const TOKEN = 'q7Jm0ZQ4nK1cXvT2bLr8sYw6eUdHa3fGiPoN5kMx9zE';
const LINK = `https://a-rather-long-name.tunnel.example/auth/verify-email/${TOKEN}`;
const mail: WaitingMail = {
  ...verificationMail('https://a-rather-long-name.tunnel.example', 'ann@example.com', TOKEN),
  id: '5f0c1a52-8f3e-4c7b-9d2a-1b7e4f6a9c03',
  writtenAt: new Date('2030-01-02T03:04:05.678Z'),
};

let folder: TemporaryDirectory;
let notices: MailNotice[];
beforeEach(async () => {
  folder = await temporaryDirectory();
  notices = [];
});
afterEach(() => folder.close());

const send = async (waiting: WaitingMail): Promise<string> => {
  const onMail = (notice: MailNotice): void => void notices.push(notice);
  const transport = new FileTransport({ dataDir: folder.path, from: 'Hatchway <no-reply@localhost>', onMail });
  await transport.send(waiting);
  transport.close();
  const [name = ''] = await readdir(join(folder.path, 'mail'));
  return join(folder.path, 'mail', name);
};

it('a mail is one file, named by time and ID, readable only by its owner', async () => {
  const file = await send(mail);
  expect(await readdir(join(folder.path, 'mail'))).toEqual([`20300102T030405.678Z-${mail.id}.eml`]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder.path, 'mail'))).mode & 0o777).toBe(0o700);
  // Sending the same mail again, as after a crash, writes the same file.
  await send(mail);
  expect(await readdir(join(folder.path, 'mail'))).toHaveLength(1);
});

it('a mail is a valid message with matching text and HTML parts', async () => {
  const message = await PostalMime.parse(await readFile(await send(mail)));
  expect(message.from).toMatchObject({ name: 'Hatchway', address: 'no-reply@localhost' });
  expect(message.to).toMatchObject([{ address: 'ann@example.com' }]);
  expect(message.subject).toBe('Verify your Hatchway email address');
  expect(message.messageId).toBe(`<${mail.id}@localhost>`);
  expect(message.date).toBe('2030-01-02T03:04:05.000Z');
  expect(message.text?.split('\n').map((line) => line.trim())).toContain(LINK);
  expect(message.html).toContain(`href="${LINK}"`);
  expect(message.attachments).toEqual([]);
});

it('the link stays unbroken in the raw message, which is 7-bit with no line over the limit', async () => {
  const raw = await readFile(await send(mail), 'latin1');
  expect(raw.split('\r\n')).toContain(LINK);
  expect(raw).toMatch(/^[\r\n\t -~]*$/);
  expect(Math.max(...raw.split('\r\n').map((line) => line.length))).toBeLessThan(998);
  expect(raw.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
});

it('non-ASCII text is sent as quoted-printable', async () => {
  const file = await send({ ...mail, text: `Grüße\n\n${LINK}\n` });
  expect(await readFile(file, 'latin1')).toMatch(
    /text\/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable/,
  );
  expect((await PostalMime.parse(await readFile(file))).text).toContain(`Grüße\n\n${LINK}`);
});

it('no address or subject can inject a header or a second recipient', async () => {
  const odd = { ...mail, recipient: "o'neil+{x}@example.com", subject: 'Hello\r\nBcc: eve@example.com' };
  const message = await PostalMime.parse(await readFile(await send(odd)));
  expect(message.to).toMatchObject([{ address: "o'neil+{x}@example.com" }]);
  expect(message.bcc ?? []).toEqual([]);
});

it('the console notice contains the link, but hides it from logs', async () => {
  const file = await send(mail);
  expect(notices).toMatchObject([{ recipient: 'ann@example.com', subject: mail.subject, file }]);
  expect(notices[0]?.link?.reveal()).toBe(LINK);
  expect(JSON.stringify(notices)).not.toContain(TOKEN);
});
