import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { loginCommand, powershellScript, shellScript } from './install-script.rules.ts';

const offer = { platform: 'https://tunnels.example.com/base', version: '1.2.3', problem: null };
const problem = "The operator's server has no files $(touch x) `touch x`";

const run = (script: string, ...args: string[]) =>
  spawnSync('sh', [...args], { input: script, encoding: 'utf8', env: { PATH: process.env['PATH'] } });

it('the shell script is valid for a POSIX shell', () => {
  for (const script of [shellScript(offer), shellScript({ ...offer, problem })]) {
    expect(run(script, '-n')).toMatchObject({ status: 0, stderr: '' });
  }
});

it('both scripts have the platform and the version of the server', () => {
  for (const script of [shellScript(offer), powershellScript(offer)]) {
    expect(script).toContain("platform='https://tunnels.example.com/base'".replace('platform=', ''));
    expect(script).toContain("'1.2.3'");
    expect(script).toContain('tunnel login --platform https://tunnels.example.com/base');
  }
});

it('without files the script says so, runs nothing, and exits with 1', () => {
  const { status, stdout, stderr } = run(shellScript({ ...offer, problem }));
  expect([status, stdout, stderr]).toEqual([1, '', `install: ${problem}\n`]);
  expect(powershellScript({ ...offer, problem })).toBe(`throw 'install: ${problem.replace("'", "''")}'\n`);
});

it('a script that arrives only in part does nothing', () => {
  const script = shellScript({ ...offer, platform: 'http://127.0.0.1:1' });
  const cut = script.slice(0, script.lastIndexOf('main'));
  expect(run(cut)).toMatchObject({ status: 0, stdout: '', stderr: '' });
});

it('a URL cannot leave its quotes', () => {
  const platform = "https://tunnels.example.com/'$(touch x)'";
  expect(run(shellScript({ ...offer, platform }), '-n').status).toBe(0);
  expect(shellScript({ ...offer, platform })).toContain(
    String.raw`platform='https://tunnels.example.com/'\''$(touch x)'\'''`,
  );
  expect(powershellScript({ ...offer, platform })).toContain("'https://tunnels.example.com/''$(touch x)'''");
});

it("the line for Path quotes a folder such as the home of O'Brien", () => {
  const script = powershellScript(offer);
  expect(script).toContain(`$quoted = $folder -replace "'", "''"\n`);
  expect(script).toContain("+ ';$quoted', 'User')");
});

it('the client signs in over plain http only if told, or on this machine', () => {
  expect(loginCommand('http://localhost:8080')).toBe('tunnel login --platform http://localhost:8080');
  expect(loginCommand('http://192.0.2.1')).toBe('tunnel login --platform http://192.0.2.1 --no-tls');
  expect(loginCommand('https://a.example')).toBe('tunnel login --platform https://a.example');
});
