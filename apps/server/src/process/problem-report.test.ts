import { ConfigProblem } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { reportProblem } from './problem-report.ts';

const report = (error: unknown, env: NodeJS.ProcessEnv = {}): { text: string; code: number } => {
  let text = '';
  const code = reportProblem(error, { write: (part: string) => (text += part) }, env);
  return { text, code };
};

it('a refused config prints one line with the next step and exits with 2', () => {
  const problem = new ConfigProblem('CONFIG_UNKNOWN_KEY', {
    where: 'server.toml:3',
    key: 'server.prot',
    suggestion: ' (did you mean `port`?)',
  });
  expect(report(problem)).toEqual({
    code: 2,
    text: 'tunnel-server: server.toml:3: unknown key `server.prot` (did you mean `port`?). Remove the key or correct the spelling.\n',
  });
});

it('an error that ends with a question mark gets no full stop', () => {
  const problem = new ConfigProblem('CONFIG_UNKNOWN_KEY', {
    where: 'server.toml:3',
    key: 'server.prot',
    suggestion: '; did you mean `port`?',
  });
  expect(report(problem).text).toContain('did you mean `port`? Remove the key');
});

it('an error about a port in use names the port and the config key', () => {
  const { text, code } = report(
    new Fault('CONFIG_PORT_TAKEN', { port: 4040, host: '127.0.0.1', key: '[server] control_port' }),
  );
  expect(text).toMatch(/^tunnel-server: port 4040 .*\[server\] control_port.*\. Stop the program.*\n$/);
  expect(code).toBe(2);
});

it.each([
  ['ACCOUNT_EXISTS', {}],
  ['API_BAD_REQUEST', { reason: 'email: must be an email address' }],
  ['KEY_UNKNOWN', {}],
  ['DATABASE_AWAY', {}],
] as const)('the error %s speaks about commands and not about API calls', (code, values) => {
  const { text } = report(new Fault(code, values));
  expect(text).not.toMatch(/POST|GET|request|header/);
  expect(text).toMatch(/^tunnel-server: .*\.\n$/);
});

it('an unexpected error prints one line and exits with 1, with the stack only when TUNNEL_DEBUG=1', () => {
  const error = new Error('boom\nsecond line');
  expect(report(error)).toEqual({
    code: 1,
    text: 'tunnel-server: unexpected error: boom. Set TUNNEL_DEBUG=1 to see a stack trace.\n',
  });
  expect(report(error, { TUNNEL_DEBUG: '1' }).text).toContain('problem-report.test.ts');
  expect(report('a string')).toMatchObject({ code: 1 });
});
