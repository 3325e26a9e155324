// An account that pays: signed up, with a card that the simulator takes, subscribed. Without a test around it, for scripts too.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import type { Stack } from './stack.ts';
import type { EdgeAccount } from './telling-edge.ts';

export interface Payer extends EdgeAccount {
  readonly email: string;
  readonly token: string;
  readonly customerId: string;
}

const PASSWORD = 'correct horse battery';
const PATIENCE = { timeoutMs: 30_000 };

let payers = 0;

export const signUpPayer = async (stack: Stack): Promise<Payer> => {
  payers += 1;
  const email = `payer-${process.pid}-${payers}@example.com`;
  const ask = (method: string, path: string, body?: object, token?: string) =>
    askJson(`${stack.run.platform_url}${path}`, method, body, token);
  await ask('POST', '/auth/register', { email, password: PASSWORD });
  await ask('GET', await verificationPath(stack, email));
  const { access_token: token, user } = await ask('POST', '/auth/login', { email, password: PASSWORD });
  const { client_secret } = await ask('POST', '/billing/setup-intent', undefined, token);
  await askJson(`${stack.run.simulator_url}/_sim/setup_intents/${client_secret}/confirm`, 'POST');
  await ask('POST', '/billing/subscribe', undefined, token);
  const { id: keyId } = await ask('POST', '/keys', { label: 'laptop' }, token);
  const { payment_customer_id: customerId } = await ask('GET', '/billing', undefined, token);
  return { email, token, accountId: user.id, keyId, customerId };
};

/** What the simulator was told that each customer used. */
export const reportedBytes = async (stack: Stack): Promise<ReadonlyMap<string, number>> => {
  const { customers } = await askJson(`${stack.run.simulator_url}/_sim`, 'GET');
  return new Map((customers as { id: string; bytes: number }[]).map(({ id, bytes }) => [id, bytes]));
};

/** Raw mails to this address. */
export const mailsTo = ({ dataDir }: Pick<Stack, 'dataDir'>, email: string): string[] => {
  const folder = join(dataDir, 'mail');
  return filesOf(folder)
    .filter((name) => name.endsWith('.eml'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .filter((raw) => raw.includes(`\nTo: ${email}\r\n`));
};

/** None was written yet. */
const filesOf = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

const verificationPath = (stack: Stack, email: string): Promise<string> =>
  eventually(() => {
    const path = mailsTo(stack, email)
      .map((raw) => /\/auth\/verify-email\/[\w-]+/.exec(raw)?.[0])
      .find((found) => found !== undefined);
    if (path === undefined) throw new Error(`no mail to ${email}`);
    return path;
  }, PATIENCE);

const askJson = async (url: string, method: string, body?: object, token?: string) => {
  const response = await fetch(url, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${new URL(url).pathname}: ${response.status} ${text}`);
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes, looked at by whoever asked.
  return JSON.parse(text) as any;
};
