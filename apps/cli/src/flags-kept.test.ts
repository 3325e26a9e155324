// The flags of every command, as completion lists them, are those of the recorded set.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildProgram } from './all-commands.ts';
import { commandWords } from './completion/command-words.ts';
import { makeTestIo } from './io/io.fixture.ts';

const FILE = join(import.meta.dirname, 'flags-kept.json');

test('every command takes the flags that it took before', () => {
  const words = commandWords(buildProgram(makeTestIo({ home: '/nowhere' }), () => {}));
  const now = Object.fromEntries(
    words.map(({ path, flags, commands, firstArgument, isRepeated }) => [
      path,
      {
        commands: commands.map(({ text }) => text).sort(),
        firstArgument,
        isRepeated,
        flags: flags.map(({ text, values }) => `${text}${values === null ? '' : ` ${String(values)}`}`).sort(),
      },
    ]),
  );
  if (!existsSync(FILE)) writeFileSync(FILE, JSON.stringify(now, null, 1));
  expect(now).toEqual(JSON.parse(readFileSync(FILE, 'utf8')));
});
