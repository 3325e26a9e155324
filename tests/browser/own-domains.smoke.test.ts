// A custom domain is added in the dashboard, and its page shows the DNS records and the command.
import { expect } from 'vitest';
import { it } from './browser-test.fixture.ts';
import { cardOf, openList } from './domains-page.fixture.ts';
import { NO_CERTIFICATE_YET } from './own-domains.fixture.ts';
import { commandIn } from './pasted-command.fixture.ts';

it('a custom domain is added from a pasted URL, and an invalid domain shows the error at its field', async ({
  profile,
  stack,
}) => {
  const { api, page } = await openList(profile, stack, []);
  await page.getByText('No domains yet').waitFor();
  await page.getByRole('button', { name: 'Add domain' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Add a domain' });
  const field = dialog.getByRole('textbox', { name: 'Domain' });
  expect(await dialog.getByRole('checkbox', { name: 'Issue a certificate' }).isChecked()).toBe(true);
  await page.keyboard.press('Enter');
  await dialog.getByText('Enter a domain').waitFor();
  api.refusal = {
    status: 400,
    code: 'DOMAIN_INVALID',
    error: "domain 'shop' is not valid: a domain needs at least two labels",
  };
  await field.fill('shop');
  await page.keyboard.press('Enter');
  await dialog.getByText("Domain 'shop' is not valid: a domain needs at least two labels.").waitFor();
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  api.refusal = { status: 403, code: 'DOMAIN_LIMIT', error: 'domain limit of 3 reached' };
  await field.fill('shop.example.com');
  await page.keyboard.press('Enter');
  await dialog.getByRole('alert').getByText('Domain limit of 3 reached.').waitFor();
  await dialog.getByText('Remove a domain first').waitFor();
  await field.fill('https://Shop.example.com/cart');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'shop.example.com', level: 1 }).waitFor();
  expect(api.list).toMatchObject([{ name: 'shop.example.com', certificate: NO_CERTIFICATE_YET }]);
  await cardOf(page, 'DNS records').getByText('Not checked yet.').waitFor();
  expect(await commandIn(cardOf(page, 'Use this domain'))).toContain('tunnel http 3000 --domain shop.example.com');
});
