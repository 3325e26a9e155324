// The life of a key from creation to revocation, with a client that uses the key.
import { expect } from 'vitest';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { commandIn, paste } from './pasted-command.fixture.ts';

it('a key is shown once, works in the command beside it, and its revocation ends the client with exit 3', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'keys');
  await account.newKey('kept');
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  await profile.logIn(account.email);
  const page = await profile.tab('/keys');
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route('**/usage/regions', async (route) => {
    await answered;
    await route.fallback();
  });
  await page.getByRole('button', { name: 'Create key' }).first().click();
  await page.getByRole('dialog').getByLabel('Label').fill('desk of Ann');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'desk of Ann' });
  const shown = (await dialog.locator('code').first().innerText()).trim();
  expect(shown).toMatch(/^tnl_[0-9A-Za-z]{38}$/);
  // Before the edge's address is known, the command would contact a different server, so the command cannot be copied yet.
  const copy = dialog.getByRole('button', { name: 'Copy the tunnel command' });
  expect(await copy.count()).toBe(0);
  answer();
  await copy.waitFor();
  const command = await commandIn(dialog);
  expect(command).toContain(shown);
  await dialog.getByRole('radio', { name: 'MCP host' }).click();
  await dialog.getByRole('radio', { name: 'Remote' }).click();
  const config = JSON.parse(await dialog.locator('pre').innerText()) as unknown;
  const headers = { Authorization: `Bearer ${shown}` };
  expect(config).toEqual({ mcpServers: { tunnel: { type: 'http', url: `${stack.run.platform_url}/mcp`, headers } } });
  // Only the dialog's button closes it. The loop is needed because browsers let a page ignore Escape only once.
  for (const _ of [1, 2, 3]) await page.keyboard.press('Escape');
  await dialog.getByRole('button', { name: 'Done' }).click();
  await dialog.waitFor({ state: 'hidden' });
  expect(await page.content()).not.toContain(shown);

  const client = await paste(harness, command.replaceAll('3000', String(web.port)));
  await client.waitForLine(/https?:\/\/\S+localhost/, { timeoutMs: 60_000 });
  const row = page.getByRole('row', { name: 'desk of Ann' });
  await page.reload();
  await row.waitFor();
  await row.getByRole('button', { name: 'Revoke' }).click();
  const question = page.getByRole('dialog', { name: 'Revoke “desk of Ann”?' });
  await question.getByText('Closes 1 live tunnel within 2 seconds.').waitFor();
  await question.getByRole('button', { name: 'Revoke key' }).click();
  expect(await client.waitForExit({ timeoutMs: 20_000 })).toMatchObject({ code: 3 });
  await row.waitFor({ state: 'detached' });
  await page.getByRole('row', { name: 'kept' }).waitFor();
});
