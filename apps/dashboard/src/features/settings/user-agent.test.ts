import { expect, it } from 'vitest';
import { programName } from './user-agent.ts';

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)';

it.each([
  [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} Chrome/147.0.0.0 Safari/537.36`, 'Chrome 147 on Linux'],
  [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} HeadlessChrome/147.0.0.0 Safari/537.36`, 'Chrome 147 on Linux'],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`,
    'Edge 140 on Windows',
  ],
  [`Mozilla/5.0 (Linux; Android 15) ${WEBKIT} Chrome/140.0.0.0 Mobile Safari/537.36`, 'Chrome 140 on Android'],
  ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox 140 on macOS'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
    'Safari 18 on iOS',
  ],
  ['tunnel/0.1.0 (linux)', 'Command line 0.1.0 on Linux'],
  ['tunnel/0.1.0 (darwin)', 'Command line 0.1.0 on macOS'],
  ['curl/8.5.0', 'curl 8'],
  ['node', 'node'],
  ['', 'Unknown program'],
])('the user agent %j is shown as %j', (userAgent, name) => {
  expect(programName(userAgent)).toBe(name);
});

it('a long user agent is cut to 80 characters', () => {
  expect(programName('x'.repeat(500))).toHaveLength(80);
});
