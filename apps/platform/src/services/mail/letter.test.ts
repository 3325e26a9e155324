import { describe, expect, it } from 'vitest';
import { resetMail } from './reset-mail.ts';
import { verificationMail } from './verification-mail.ts';

const TOKEN = 'q7Jm0ZQ4nK1cXvT2bLr8sYw6eUdHa3fGiPoN5kMx9zE';

describe('our mails', () => {
  it('carry the link on a line of its own, in plain ASCII', () => {
    const { text } = verificationMail('http://localhost:8080', 'ann@example.com', TOKEN);
    expect(text.split('\n')).toContain(`http://localhost:8080/auth/verify-email/${TOKEN}`);
    expect(text).toMatch(/^[\n -~]*$/);
    const reset = resetMail('https://tunnel.example/', 'ann@example.com', TOKEN).text;
    expect(reset.split('\n')).toContain(`https://tunnel.example/app/reset-password?token=${TOKEN}`);
    expect(reset).toMatch(/^[\n -~]*$/);
  });

  it('say the same in HTML, where nothing of an address is markup', () => {
    const { html } = resetMail('http://localhost:8080', "o'neil&co@example.com", TOKEN);
    expect(html).toContain(`href="http://localhost:8080/app/reset-password?token=${TOKEN}"`);
    expect(html).toContain('o&#39;neil&amp;co@example.com');
    expect(html).not.toContain("o'neil&co");
  });
});
