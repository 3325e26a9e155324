import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorScene } from '../simulator.fixture.ts';

let scene: SimulatorScene;

beforeAll(async () => {
  scene = await SimulatorScene.open();
});
afterAll(() => scene.close());

const page = async (path: string): Promise<string> => (await fetch(`${scene.simulator.url}${path}`)).text();

/** As a browser sends a form of ours. */
const press = (action: string, fields: Record<string, string>): Promise<Response> =>
  fetch(`${scene.simulator.url}${action}`, {
    method: 'POST',
    headers: { origin: scene.simulator.url },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });

describe('the pages of the simulator', () => {
  it('let a person do what the control calls do, and come back', async () => {
    const customerId = await scene.processor.ensureCustomer({ userId: 'u', email: 'ann@example.com', name: null });
    const { clientSecret } = await scene.processor.createSetupIntent(customerId, 'k');
    const action = `/_sim/setup_intents/${clientSecret.split('_secret_')[0]}/confirm`;
    expect(await page('/')).toContain(`action="${action}"`);
    const declined = await press(action, { card: 'declined', back: '/' });
    expect([declined.status, await declined.text()]).toEqual([402, expect.stringContaining('Your card was declined.')]);
    expect((await press(action, { card: 'good', back: '/' })).headers.get('location')).toBe('/');
    expect(await page('/')).not.toContain(action);
    expect((await press('/_sim/webhooks', { mode: 'twice', back: '/' })).status).toBe(303);
    expect(await page('/')).toContain('twice');
    const order = { customerId, userId: 'u', idempotencyKey: 's' };
    const subscription = await scene.processor.subscribe(order);
    expect(await page('/')).toContain(`action="/_sim/subscriptions/${subscription.id}/cancel"`);
    await press(`/_sim/subscriptions/${subscription.id}/cancel`, { back: '/' });
    expect(await page('/')).toContain(`action="/_sim/subscriptions/${subscription.id}/keep"`);
    await press('/_sim/clock', { advance_secs: String(40 * 86_400), back: '/' });
    expect(await page('/')).toContain('SIM-000001');
  });

  it('show a customer their portal, with the way back', async () => {
    const customerId = await scene.customerWithCard();
    const returnUrl = 'https://platform.example/app/billing?a="b"&c=<d>';
    const url = new URL(await scene.processor.openPortal({ customerId, returnUrl }));
    expect(url.origin).toBe(scene.simulator.url);
    const html = await page(url.pathname);
    expect(html).toContain('href="https://platform.example/app/billing?a=&quot;b&quot;&amp;c=&lt;d&gt;"');
    expect(html).toContain('•••• 4242');
    const added = await press(`/_sim/customers/${customerId}/cards`, { card: 'fails_later', back: url.pathname });
    expect(added.headers.get('location')).toBe(url.pathname);
    expect(await page(url.pathname)).toContain('•••• 0341');
    expect((await fetch(`${scene.simulator.url}/portal/bps_nobody`)).status).toBe(404);
  });

  it('never run or lead to what a customer wrote', async () => {
    const email = '<script>alert(1)</script>@example.com';
    const customerId = await scene.processor.ensureCustomer({ userId: 'x', email, name: '<b>' });
    await scene.processor.createSetupIntent(customerId, 'x');
    const html = await page('/');
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;@example.com');
    expect(html).not.toContain('<script>');
    const away = await press('/_sim/webhooks', { mode: 'normal', back: 'https://evil.example/' });
    expect(away.headers.get('location')).toBe('/');
    const policy = (await fetch(scene.simulator.url)).headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    await expect(scene.processor.openPortal({ customerId, returnUrl: 'javascript:alert(1)' })).rejects.toThrow();
  });
});
