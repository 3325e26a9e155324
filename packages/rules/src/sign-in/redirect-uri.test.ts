import { describe, expect, it } from 'vitest';
import { allowsRedirectUri, hostOfUri, problemOfRedirectUri, withAnswer } from './redirect-uri.ts';

describe('a redirect URI', () => {
  it.each([
    'https://app.example.com/callback',
    'https://app.example.com',
    'https://app.example.com:8443/a?b=c&d=%20',
    'https://[2001:db8::1]/callback',
    'https://App.example.com:443/callback',
    'https://app.example.com./callback',
    'http://localhost/callback',
    'http://127.0.0.1:33418/callback?x=1',
    'http://[::1]:1/',
    'http://localhost',
  ])('is valid: %s', (uri) => {
    expect(problemOfRedirectUri(uri)).toBeNull();
  });

  it.each([
    ['javascript:alert(1)', 'is neither https nor http on localhost'],
    ['JavaScript://localhost/%0aalert(1)', 'is neither https nor http on localhost'],
    ['data:text/html,x', 'is neither https nor http on localhost'],
    ['cursor://oauth/callback', 'is neither https nor http on localhost'],
    ['//app.example.com/callback', 'is neither https nor http on localhost'],
    ['', 'is neither https nor http on localhost'],
    [' https://app.example.com/', 'is neither https nor http on localhost'],
    ['http://app.example.com/callback', 'is http and not on localhost, 127.0.0.1 or [::1]'],
    ['http://localhost.example.com/', 'is http and not on localhost, 127.0.0.1 or [::1]'],
    ['http://127.0.0.2/', 'is http and not on localhost, 127.0.0.1 or [::1]'],
    ['http://0x7f.1/', 'is http and not on localhost, 127.0.0.1 or [::1]'],
    ['http://localhost:80@evil.example/', 'has a user name in it'],
    ['https://app.example.com@evil.example/', 'has a user name in it'],
    ['https://app.example.com/callback#token', 'has a fragment'],
    ['http://localhost/#', 'has a fragment'],
    ['https://evil.example\\.app.example.com/', 'is not a URL'],
    ['https://app.example.com/a\\b', 'is not a URL'],
    ['https://app.example.com/a b', 'is not a URL'],
    ['https://app.example.com/a\nb', 'is not a URL'],
    ['https://app.example.com/ä', 'is not a URL'],
    ['https://ex ample.com/', 'is not a URL'],
    ['https:/app.example.com/', 'is not a URL'],
    ['https:app.example.com', 'is not a URL'],
    ['https:///callback', 'is not a URL'],
    // Browsers cannot open these URLs, even after the user has agreed.
    ['https://app.example.com:65536/callback', 'is not a URL'],
    ['http://localhost:99999/callback', 'is not a URL'],
    ['https://[1::2::3]/callback', 'is not a URL'],
    ['https://999.1.1.1/callback', 'is not a URL'],
    // Browsers open these URLs at another host than the host shown to the user.
    ['https://0x7f.1/callback', 'is not a URL'],
    ['https://2130706433/callback', 'is not a URL'],
    ['https://127.0.0.1./callback', 'is not a URL'],
    ['https://[::ffff:127.0.0.1]/callback', 'is not a URL'],
    [`https://app.example.com/${'a'.repeat(2000)}`, 'is too long'],
  ])('is refused: %j', (uri, problem) => {
    expect(problemOfRedirectUri(uri)).toBe(problem);
  });

  it('is parsed like a URL: an accepted URI goes to the host that it shows', () => {
    const odd = ['https://app.example.com:8443/a@b', 'https://a.example?@b.example', 'http://127.0.0.1:1?//b/'];
    const addresses = [
      'https://1.2.3.4/',
      'https://[::ffff:102:304]/',
      'https://[2001:db8:0:1::]:8443/',
      'https://0x7f.g/',
    ];
    for (const uri of [...odd, ...addresses]) {
      expect(problemOfRedirectUri(uri)).toBeNull();
      expect(new URL(uri).host).toBe(hostOfUri(uri));
    }
  });
});

describe('a requested redirect URI', () => {
  const listed = ['https://app.example.com/callback', 'http://127.0.0.1/callback', 'http://localhost:3000/cb?x=1'];

  it.each([
    'https://app.example.com/callback',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:49152/callback',
    'http://localhost/cb?x=1',
    'http://localhost:3001/cb?x=1',
  ])('is accepted if registered, with any port on localhost: %s', (asked) => {
    expect(allowsRedirectUri(listed, asked)).toBe(true);
  });

  it.each([
    'https://app.example.com/callback/',
    'https://app.example.com/callback?x=1',
    'https://app.example.com/callback2',
    'https://app.example.com/call',
    'https://app.example.com:444/callback',
    'https://APP.example.com/callback',
    'https://app.example.com.evil.example/callback',
    'http://localhost:1/callback',
    'http://[::1]:1/callback',
    'http://127.0.0.1:49152/callback/..',
    'http://127.0.0.1:49152@evil.example/callback',
    'http://127.0.0.1:x/callback',
    'https://127.0.0.1/callback',
  ])('is refused if it differs from the registered URIs: %s', (asked) => {
    expect(allowsRedirectUri(listed, asked)).toBe(false);
  });
});

it.each([
  ['https://a.example/cb', 'https://a.example/cb?code=a%26b&iss=https%3A%2F%2Fp.example'],
  ['https://a.example', 'https://a.example?code=a%26b&iss=https%3A%2F%2Fp.example'],
  ['https://a.example/cb?x=1', 'https://a.example/cb?x=1&code=a%26b&iss=https%3A%2F%2Fp.example'],
  ['https://a.example/cb?', 'https://a.example/cb?code=a%26b&iss=https%3A%2F%2Fp.example'],
])('the sign-in answer is appended to the query of %s', (uri, answer) => {
  expect(withAnswer(uri, { code: 'a&b', state: null, iss: 'https://p.example' })).toBe(answer);
});

it.each([
  ['http://127.0.0.1:3000/x', '127.0.0.1:3000'],
  ['https://App.example.com', 'app.example.com'],
  ['nothing', ''],
])('for %s the sign-in page shows the host %s', (uri, host) => {
  expect(hostOfUri(uri)).toBe(host);
});
