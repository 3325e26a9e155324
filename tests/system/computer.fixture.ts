// A user's computer with a signed-in `tunnel` that runs inside the test process. Key and server are in its config.yml.
import { expect } from 'vitest';
import { run } from '../../apps/cli/src/all-commands.ts';
import { makeTestIo, piping } from '../../apps/cli/src/io/io.fixture.ts';
import type { Harness } from './harness.fixture.ts';
import { Person } from './platform-test.fixture.ts';
import type { Stack } from './stack.fixture.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a `tunnel` command until the command exits. */
export const runTunnel = async (
  home: string,
  args: readonly string[],
  input = '',
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> => {
  const io = makeTestIo({ home, env, stdin: piping(input) });
  const code = await run(args, io);
  return { code, out: io.out(), err: io.err() };
};

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

  tunnel(args: readonly string[], input = ''): Promise<Ran> {
    return runTunnel(this.home, args, input);
  }

  /** Runs a command with --json, and returns its parsed output. */
  async json<T>(args: readonly string[]): Promise<T> {
    return JSON.parse((await this.tunnel([...args, '--json'])).out) as T;
  }
}
