// The API reference: Swagger UI served by the platform under its content security policy. A violation fails the profile.
import { expect } from 'vitest';
import { it } from './browser-test.fixture.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

it('the API reference lists every operation, sends a request, and links back to the dashboard', async ({
  profile,
  stack,
}) => {
  const { platform_url: url } = stack.run;
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  const told = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const page = await profile.context.newPage();
  const answer = await page.goto(`${url}/docs`);
  expect(answer?.headers()['content-security-policy']).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  );
  await page.getByRole('heading', { name: 'Hatchway platform API' }).waitFor();

  const blocks = page.locator('.opblock');
  await blocks.first().waitFor();
  const methods = await blocks.locator('.opblock-summary-method').allTextContents();
  const places = await blocks.locator('.opblock-summary-path').allTextContents();
  // Swagger UI inserts zero-width spaces into long paths, so that the paths can wrap.
  const shown = places.map((place, at) => `${methods[at]} ${place.replaceAll('\u200b', '')}`);
  expect(new Set(shown)).toEqual(new Set(told));

  // Bodies, examples and schemas are rendered when an operation is opened.
  const create = blocks.filter({ has: page.locator('[data-path="/keys"]') }).filter({ hasText: 'POST' });
  await create.locator('.opblock-summary-control').click();
  await create.getByText('laptop').first().waitFor();
  await page.getByRole('button', { name: 'UserPublic' }).first().click();

  const health = blocks.filter({ has: page.locator('[data-path="/health"]') });
  await health.locator('.opblock-summary-control').click();
  await health.getByRole('button', { name: 'Try it out' }).click();
  await health.getByRole('button', { name: 'Execute' }).click();
  await health.locator('.live-responses-table').getByText('200').first().waitFor();
  expect(await health.locator('.curl-command').textContent()).toContain(`${url}/health`);
  await health.locator('.curl-command .copy-to-clipboard').waitFor();

  expect(await page.locator('main').count()).toBe(1);

  await page.getByRole('link', { name: 'Back to the dashboard' }).click();
  await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
});
