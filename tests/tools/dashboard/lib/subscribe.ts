// Turns an account into a paying account: a card at the simulated processor, a subscription, a cap, and a monthly invoice.
import type { Account } from '../../../browser/account.fixture.ts';
import type { Stack } from '../../../system/stack.fixture.ts';

const CAP_CENTS = 2000;
/** Seconds that end any month. */
const MONTH_SECS = 32 * 86_400;

export const subscribe = async (stack: Stack, account: Account): Promise<void> => {
  const { client_secret: secret } = await account.post<{ client_secret: string }>('/billing/setup-intent');
  await atSimulator(stack, `/_sim/setup_intents/${secret}/confirm`, { card: 'good' });
  await account.post('/billing/subscribe');
  await account.patch('/billing/spend-cap', { spend_cap_cents: CAP_CENTS });
  await atSimulator(stack, '/_sim/clock', { advance_secs: MONTH_SECS });
};

const atSimulator = async ({ run }: Stack, path: string, body: unknown): Promise<void> => {
  const answer = await fetch(run.simulator_url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
};
