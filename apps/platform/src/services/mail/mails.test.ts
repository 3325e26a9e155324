import { describe, expect, it } from 'vitest';
import {
  addressChangedMail,
  capMail,
  invitationMail,
  newAddressMail,
  paymentFailedMail,
  resetMail,
  verificationMail,
  welcomeMail,
} from './mails.ts';

const TOKEN = 'q7Jm0ZQ4nK1cXvT2bLr8sYw6eUdHa3fGiPoN5kMx9zE';

describe('mails', () => {
  it('have the link on a separate line, in plain ASCII', () => {
    const { text } = verificationMail('http://localhost:8080', 'ann@example.com', TOKEN);
    expect(text.split('\n')).toContain(`http://localhost:8080/auth/verify-email/${TOKEN}`);
    expect(text).toMatch(/^[\n -~]*$/);
    const reset = resetMail('https://tunnel.example/', 'ann@example.com', TOKEN).text;
    expect(reset.split('\n')).toContain(`https://tunnel.example/app/reset-password?token=${TOKEN}`);
    expect(reset).toMatch(/^[\n -~]*$/);
  });

  it.each([
    ['invitation', invitationMail, `/app/signup?invite=${TOKEN}`],
    ['first password', welcomeMail, `/app/reset-password?token=${TOKEN}`],
    ['new address', newAddressMail, `/auth/verify-email/${TOKEN}`],
  ])('about an account contain its link: %s', (_, mailOf, path) => {
    const { recipient, text } = mailOf('https://tunnel.example/', 'ann@example.com', TOKEN);
    expect([recipient, text.split('\n').includes(`https://tunnel.example${path}`)]).toEqual(['ann@example.com', true]);
    expect(text).toMatch(/^[\n -~]*$/);
  });

  it('to the old address name the new address and contain no token', () => {
    const { recipient, text } = addressChangedMail('https://tunnel.example', 'old@example.com', 'new@example.com');
    expect([recipient, text.replaceAll('\n', ' ')]).toEqual([
      'old@example.com',
      expect.stringContaining('new@example.com'),
    ]);
    expect(text).not.toContain('token');
  });

  it('have the same content in HTML, with addresses escaped', () => {
    const { html } = resetMail('http://localhost:8080', "o'neil&co@example.com", TOKEN);
    expect(html).toContain(`href="http://localhost:8080/app/reset-password?token=${TOKEN}"`);
    expect(html).toContain('o&#39;neil&amp;co@example.com');
    expect(html).not.toContain("o'neil&co");
  });

  it('about billing name the amount and the link to change it, in plain ASCII', () => {
    const url = 'https://tunnel.example/';
    const most = capMail(url, 'ann@example.com', { percent: 80, capCents: 2050, usedCents: 1640 });
    expect(most.subject).toBe('80 % of your spend limit used');
    const all = capMail(url, 'ann@example.com', { percent: 100, capCents: 2050, usedCents: 2051 });
    expect(all.subject).toBe('Spend limit of $20.50 reached');
    expect(all.text.replaceAll('\n', ' ')).toContain(
      'has used $20.51 this month and reached the spend limit of $20.50.',
    );
    const failed = paymentFailedMail(url, 'ann@example.com');
    expect(failed.text.replaceAll('\n', ' ')).toContain('Your tunnels keep working for 7 days.');
    for (const { text, html } of [most, all, failed]) {
      expect(text.split('\n')).toContain('https://tunnel.example/app/billing');
      expect(text).toMatch(/^[\n -~]*$/);
      expect(html).toContain('href="https://tunnel.example/app/billing"');
    }
  });
});
