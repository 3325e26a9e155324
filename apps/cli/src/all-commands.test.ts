import { describe, expect, it } from 'vitest';
import { buildProgram, run } from './all-commands.ts';
import { makeTestIo } from './io/io.fixture.ts';

const testIo = () => makeTestIo({ home: '/nowhere' });

/** Removes the layout of a help text, which depends on the width of the terminal. */
const words = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

describe('tunnel', () => {
  it('shows the same help without its commands loaded as with all of them', async () => {
    const io = testIo();
    expect(await run(['--help'], io)).toBe(0);
    const program = await buildProgram(testIo(), () => {});
    expect(words(io.out())).toContain(words(program.helpInformation()));
  });

  it('loads the command that `tunnel help` names', async () => {
    const io = testIo();
    expect(await run(['help', 'http'], io)).toBe(0);
    expect(io.out()).toContain('--subdomain');
  });

  it('loads a command by its alias', async () => {
    const io = testIo();
    expect(await run(['pools', '--help'], io)).toBe(0);
    expect(io.out()).toContain('Usage: tunnel groups|pools');
  });

  it('suggests a command whose code is not loaded', async () => {
    const io = testIo();
    expect(await run(['htpt'], io)).toBe(2);
    expect(io.err()).toContain('Did you mean http?');
  });
});
