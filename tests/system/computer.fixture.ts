// Somebody's computer: logged in, with a key and the server in its config.yml, and the real program on it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { Harness } from './harness.fixture.ts';
import { Person } from './platform-test.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';
import { TUNNEL_BIN } from './tunnel-program.fixture.ts';

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export class Computer {
  readonly person: Person;
  readonly home: string;

  constructor(person: Person, home: string) {
    this.person = person;
    this.home = home;
  }

  static async of(harness: Harness, stack: Stack, name: string): Promise<Computer> {
    const computer = new Computer(await Person.signUp(stack, name), await harness.folder());
    const login = ['login', '--platform', stack.run.platform_url, '--email', computer.person.email];
    const { code, err } = await computer.tunnel([...login, '--password-stdin'], 'correct horse battery\n');
    expect([code, err]).toEqual([0, '']);
    return computer;
  }

  async tunnel(args: readonly string[], input = ''): Promise<Ran> {
    const env = { ...withoutOurEnvironment(), HOME: this.home };
    const child = spawn(process.execPath, [TUNNEL_BIN, ...args], { env, cwd: this.home });
    child.stdin.end(input);
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: child.exitCode, out, err };
  }

  /** What a command prints with --json. */
  async json<T>(args: readonly string[]): Promise<T> {
    return JSON.parse((await this.tunnel([...args, '--json'])).out) as T;
  }
}
