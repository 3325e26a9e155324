// A name of an account in the dashboard: reserved, released and taken back.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { cardOf, stateOf } from './domains-page.fixture.ts';
import { commandIn } from './pasted-command.fixture.ts';

it('a reserved name shows its command, is released only after its name is typed, and can be taken back', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'names');
  const name = `card-${process.pid}`;
  await profile.logIn(account.email);
  const page = await profile.tab('/names');
  await page.getByText('No reserved names yet').waitFor();
  await page.getByRole('button', { name: 'Reserve' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).waitFor();
  await page.keyboard.press('Enter');
  await dialog.getByText('Enter a name').waitFor();
  await page.keyboard.type('www');
  await page.keyboard.press('Enter');
  await dialog
    .getByRole('alert')
    .getByText(/it is reserved/)
    .waitFor();
  expect(await dialog.getByRole('textbox', { name: 'Name' }).getAttribute('aria-invalid')).toBe('true');
  await dialog.getByRole('textbox', { name: 'Name' }).fill(name.toUpperCase());
  await dialog.getByText(`Public URL: ${name}.localhost`).waitFor();
  await page.keyboard.press('Enter');
  const made = page.getByRole('dialog', { name: `${name} is reserved` });
  expect(await commandIn(made)).toContain(`tunnel http 3000 --subdomain ${name}`);
  await made.getByRole('button', { name: 'Done' }).click();
  const row = cardOf(page, 'Reserved').getByRole('row', { name });
  await row.getByText('Never used').waitFor();
  await cardOf(page, 'Reserved')
    .getByText(/^1 of \d+ on your free plan\.$/)
    .waitFor();
  expect(await stateOf(account, name)).toBe('reserved');

  await row.getByRole('button', { name: `Release ${name}` }).click();
  const question = page.getByRole('dialog', { name: `Release ${name}?` });
  await page.keyboard.type('yes');
  await page.keyboard.press('Enter');
  await question.getByRole('alert').getByText(`Type ${name}`).waitFor();
  expect(await stateOf(account, name)).toBe('reserved');
  await question.getByLabel(`Type ${name} to confirm`).fill(name);
  await question.getByRole('button', { name: 'Release' }).click();
  await question.waitFor({ state: 'hidden' });
  const kept = cardOf(page, 'Temporarily held').getByRole('row', { name });
  await kept.getByText(/until \d+ \w+ \d{4}/).waitFor();
  expect(await stateOf(account, name)).toBe('released');
  await kept.getByRole('button', { name: `Take back ${name}` }).click();
  await page.getByRole('status').getByText(`${name} is reserved for your account`).waitFor();
  await row.getByText('Reserved').waitFor();
  expect(await stateOf(account, name)).toBe('reserved');
});
