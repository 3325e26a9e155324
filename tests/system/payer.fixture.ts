// A paying account: signed up, with a card that the simulator accepts, and subscribed. Independent of tests, so that scripts can use it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformClient } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import type { Stack } from './stack.fixture.ts';
import type { EdgeAccount } from './usage-reporting-edge.fixture.ts';

export interface Payer extends EdgeAccount {
  readonly email: string;
  readonly accessToken: string;
  /** Returns an API client of the account, at any platform of the same database. */
  readonly client: (stack: Stack) => PlatformClient;
  readonly customerId: string;
}

const PASSWORD = 'correct horse battery';
const PATIENCE = { timeoutMs: 60_000 };

let payers = 0;

export const signUpPayer = async (stack: Stack): Promise<Payer> => {
  payers += 1;
  const email = `payer-${process.pid}-${payers}@example.com`;
  let token = '';
  const client = ({ run }: Stack): PlatformClient =>
    new PlatformClient({ url: run.platform_url, fetch, accessToken: () => token });
  const account = client(stack);
  await account.register({ email, password: PASSWORD });
  await account.verifyEmail(await verificationToken(stack, email));
  const { body } = await account.logIn({ email, password: PASSWORD });
  token = body.access_token;
  const { client_secret } = await account.createSetupIntent();
  await askSimulator(stack, `/setup_intents/${client_secret}/confirm`, {});
  await account.subscribe();
  const { id: keyId } = await account.createKey({ label: 'laptop' });
  const { payment_customer_id: customerId } = await account.billing();
  return { email, accessToken: token, client, accountId: body.user.id, keyId, customerId: customerId ?? '' };
};

/** Calls the control API of the simulator. */
export const askSimulator = async ({ run }: Stack, path: string, body?: object): Promise<unknown> => {
  const posted = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${run.simulator_url}/_sim${path}`, posted);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
};

/** Returns the usage that was reported to the simulator, by customer. */
export const reportedBytes = async (stack: Stack): Promise<ReadonlyMap<string, number>> => {
  const { customers } = (await askSimulator(stack, '')) as { customers: { id: string; bytes: number }[] };
  return new Map(customers.map(({ id, bytes }) => [id, bytes]));
};

/** Returns the raw mails to an address. */
export const mailsTo = ({ dataDir }: Pick<Stack, 'dataDir'>, email: string): string[] => {
  const folder = join(dataDir, 'mail');
  return filesOf(folder)
    .filter((name) => name.endsWith('.eml'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .filter((raw) => raw.includes(`\nTo: ${email}\r\n`));
};

/** The folder does not exist before the first mail. */
const filesOf = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

const verificationToken = (stack: Stack, email: string): Promise<string> =>
  eventually(() => {
    const [token] = mailsTo(stack, email).flatMap((raw) => /\/auth\/verify-email\/([\w-]+)/.exec(raw)?.[1] ?? []);
    if (token === undefined) throw new Error(`no mail to ${email}`);
    return token;
  }, PATIENCE);
