// Checks that the faults which fail every other browser test are detected.

import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { it } from './browser-test.fixture.ts';
import { Profile } from './profile.fixture.ts';

it('a script error, a policy violation, a request to a foreign host and a 500 response are each recorded as a fault', async ({
  browser,
  harness,
  stack,
}) => {
  const profile = harness.use(await Profile.open(browser, stack));
  await profile.context.route('**/auth/refresh', (route) => route.fulfill({ status: 500, json: { error: 'broken' } }));
  const page = await profile.tab('/login');
  await page.evaluate(`fetch('/auth/refresh', { method: 'POST' })`);
  await page.evaluate(`setTimeout(() => { throw new Error('thrown by the test') })`);
  await page.evaluate(`{
    const inline = document.createElement('script');
    inline.textContent = 'document.title = "inline"';
    document.head.append(inline);
    new Image().src = 'http://elsewhere.example/pixel.png';
  }`);
  await page.evaluate(`fetch('http://elsewhere.example/').catch(() => {})`);
  await page.goto(`${stack.run.platform_url}/health`);
  await page.evaluate(`location.assign('http://127.0.0.1:9/')`).catch(() => {});
  await eventually(() => {
    const all = profile.faults.join('\n');
    expect(all).toContain('thrown by the test');
    expect(all).toContain('content security policy: script-src-elem inline');
    expect(all).toContain('content security policy: img-src');
    expect(all).toContain('content security policy: connect-src');
    expect(all).toContain('asked http://127.0.0.1:9/');
    expect(all).toContain('/auth/refresh answered 500');
  });
});
