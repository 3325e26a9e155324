// Signs up at the platform of a running server, verifies the address with the link in the mail file, and signs in.
// As a program: node sign-up.mjs DATA_DIR prints { email, password, platform_url, access_token } as JSON.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const PASSWORD = 'correct horse battery';
const MAIL_TIMEOUT_MS = 20_000;

/** @param {string} dataDir data directory of a server that is ready */
export async function signUp(dataDir, email = `someone-${process.pid}-${Date.now()}@example.com`) {
  const { platform_url: url } = JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8'));
  const account = { email, password: PASSWORD };
  await expectStatus(201, await post(`${url}/auth/register`, account));
  await expectStatus(200, await fetch(`${url}${await verificationPath(join(dataDir, 'mail'), email)}`));
  const login = await expectStatus(200, await post(`${url}/auth/login`, account));
  return { ...account, platform_url: url, access_token: login.access_token };
}

const post = (url, body) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

async function expectStatus(status, response) {
  const text = await response.text();
  if (response.status !== status) throw new Error(`${response.url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

async function verificationPath(folder, email) {
  const giveUpAt = Date.now() + MAIL_TIMEOUT_MS;
  while (Date.now() < giveUpAt) {
    const found = mailsIn(folder).find((mail) => mail.includes(email));
    const link = found && /^https?:\/\/\S+\/auth\/verify-email\/\S+/m.exec(found)?.[0];
    if (link) return new URL(link).pathname;
    await delay(50);
  }
  throw new Error(`no mail to ${email} in ${folder}`);
}

/** Returns the mails of a folder, newest first, without the soft line breaks of quoted-printable. */
function mailsIn(folder) {
  let names = [];
  try {
    names = readdirSync(folder);
  } catch {
    // The folder does not exist before the first mail.
  }
  return names
    .filter((name) => name.endsWith('.eml'))
    .toSorted((a, b) => b.localeCompare(a))
    .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll(/=\r?\n/g, ''));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write(`${JSON.stringify(await signUp(process.argv[2]))}\n`);
}
