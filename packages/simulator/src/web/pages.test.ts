import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SimulatorHarness } from '../simulator.fixture.ts';

let harness: SimulatorHarness;

beforeAll(async () => {
  harness = await SimulatorHarness.open();
});
afterAll(() => harness.close());

const page = async (path: string): Promise<string> => (await fetch(`${harness.simulator.url}${path}`)).text();

/** Submits a form of a simulator page as a browser does. */
const press = (action: string, fields: Record<string, string>): Promise<Response> =>
  fetch(`${harness.simulator.url}${action}`, {
    method: 'POST',
    headers: { origin: harness.simulator.url },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });

const openPortal = (customer: string, return_url: string) =>
  harness.stripe.billingPortal.sessions.create({ customer, return_url });

describe('the pages of the simulator', () => {
  it('offer the actions of the control calls, and then lead back', async () => {
    const customerId = await harness.createCustomer('ann@example.com');
    const clientSecret = await harness.createSetupIntent(customerId);
    const action = `/_sim/setup_intents/${clientSecret.split('_secret_')[0]}/confirm`;
    expect(await page('/')).toContain(`action="${action}"`);
    const declined = await press(action, { card: 'declined', back: '/' });
    expect([declined.status, await declined.text()]).toEqual([402, expect.stringContaining('Your card was declined.')]);
    expect((await press(action, { card: 'good', back: '/' })).headers.get('location')).toBe('/');
    expect(await page('/')).not.toContain(action);
    expect((await press('/_sim/webhooks', { mode: 'twice', back: '/' })).status).toBe(303);
    expect(await page('/')).toContain('twice');
    const subscription = await harness.subscribe(customerId, 's');
    expect(await page('/')).toContain(`action="/_sim/subscriptions/${subscription.id}/cancel"`);
    await press(`/_sim/subscriptions/${subscription.id}/cancel`, { back: '/' });
    expect(await page('/')).toContain(`action="/_sim/subscriptions/${subscription.id}/keep"`);
    await press('/_sim/clock', { advance_secs: String(40 * 86_400), back: '/' });
    expect(await page('/')).toContain('SIM-000001');
  });

  it('show a customer the billing portal with a link back', async () => {
    const customerId = await harness.customerWithCard();
    const returnUrl = 'https://platform.example/app/billing?a="b"&c=<d>';
    const session = await openPortal(customerId, returnUrl);
    const url = new URL(session.url);
    expect(url.origin).toBe(harness.simulator.url);
    const html = await page(url.pathname);
    expect(html).toContain('href="https://platform.example/app/billing?a=&quot;b&quot;&amp;c=&lt;d&gt;"');
    expect(html).toContain('•••• 4242');
    const added = await press(`/_sim/customers/${customerId}/cards`, { card: 'fails_later', back: url.pathname });
    expect(added.headers.get('location')).toBe(url.pathname);
    expect(await page(url.pathname)).toContain('•••• 0341');
    expect((await fetch(`${harness.simulator.url}/portal/bps_nobody`)).status).toBe(404);
  });

  it('ask only for a card when requested, and redirect after it was added', async () => {
    const customer = await harness.createCustomer('cyd@example.com');
    const return_url = 'http://localhost:8080/app/billing';
    const { url } = await harness.stripe.billingPortal.sessions.create({
      customer,
      return_url,
      flow_data: {
        type: 'payment_method_update',
        after_completion: { type: 'redirect', redirect: { return_url: `${return_url}?card` } },
      },
    });
    const { pathname } = new URL(url);
    const html = await page(pathname);
    expect(html).toContain('Add test card');
    expect(html).not.toContain('Subscription');
    expect((await fetch(url)).headers.get('content-security-policy')).toContain(
      "form-action 'self' http://localhost:8080;",
    );
    const added = await press(`/_sim/customers/${customer}/cards`, { card: 'good', back: `${pathname}/return` });
    expect(added.headers.get('location')).toBe(`${pathname}/return`);
    const led = await fetch(`${url}/return`, { redirect: 'manual' });
    expect([led.status, led.headers.get('location')]).toEqual([303, `${return_url}?card`]);
    expect((await fetch(`${harness.simulator.url}/portal/bps_nobody/return`)).status).toBe(404);
  });

  it('show an invoice at the address from the invoice list', async () => {
    const customer = await harness.customerWithCard();
    await harness.subscribe(customer, 'invoiced');
    await press('/_sim/clock', { advance_secs: String(40 * 86_400), back: '/' });
    const [invoice] = (await harness.stripe.invoices.list({ customer })).data;
    const url = new URL(invoice?.hosted_invoice_url ?? '');
    expect(url.origin).toBe(harness.simulator.url);
    const html = await page(url.pathname);
    for (const part of [`Invoice ${invoice?.number}`, '$3.00', 'Test mode', 'paid']) expect(html).toContain(part);
    expect(await page('/')).toContain(`href="${url.pathname}"`);
    expect((await fetch(`${harness.simulator.url}/invoice/in_nobody`)).status).toBe(404);
  });

  it('escape customer input, and redirect to no other site', async () => {
    const email = '<script>alert(1)</script>@example.com';
    const customerId = await harness.createCustomer(email, '<b>');
    await harness.createSetupIntent(customerId);
    const html = await page('/');
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;@example.com');
    expect(html).not.toContain('<script>');
    const away = await press('/_sim/webhooks', { mode: 'normal', back: 'https://evil.example/' });
    expect(away.headers.get('location')).toBe('/');
    const policy = (await fetch(harness.simulator.url)).headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    await expect(openPortal(customerId, 'javascript:alert(1)')).rejects.toThrow('Not a valid URL');
  });
});
